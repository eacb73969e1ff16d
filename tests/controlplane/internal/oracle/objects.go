package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"

	// Each install package puts the defaulting functions of its group into the scheme.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// objects holds the objects of a case by kind name, each in the order given.
type objects struct {
	byKind   map[string][]any
	ignored  []string
	warnings []string
}

// decodeObjects reads the objects of a case.
func decodeObjects(raws []json.RawMessage, withDefaults bool) (*objects, error) {
	objs := &objects{byKind: map[string][]any{}}
	seen := map[string]bool{}
	for i, raw := range raws {
		var meta metav1.TypeMeta
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		k, known := kindOf(meta.APIVersion, meta.Kind)
		if meta.APIVersion == "" || !known {
			if label := meta.APIVersion + " " + meta.Kind; !slices.Contains(objs.ignored, label) {
				objs.ignored = append(objs.ignored, label)
			}
			continue
		}
		obj, unknown, err := decode(k, raw, withDefaults)
		if err != nil {
			return nil, fmt.Errorf("objects[%d] %s: %w", i, k.name, err)
		}
		key := k.name + " " + obj.GetNamespace() + "/" + obj.GetName()
		if seen[key] {
			return nil, fmt.Errorf("objects[%d]: %s is there twice", i, key)
		}
		seen[key] = true
		for _, field := range unknown {
			objs.warnings = append(objs.warnings, key+": "+field)
		}
		if pod, ok := obj.(*corev1.Pod); ok && !visible(pod) {
			continue
		}
		objs.byKind[k.name] = append(objs.byKind[k.name], obj)
	}
	return objs, nil
}

// decode reads one object of a known kind, and names the fields that the kind does not have.
func decode(k kind, raw json.RawMessage, withDefaults bool) (object, []string, error) {
	obj := k.empty()
	unknown, err := kjson.UnmarshalStrict(raw, obj)
	if err != nil {
		return nil, nil, err
	}
	fields := make([]string, 0, len(unknown))
	for _, field := range unknown {
		fields = append(fields, field.Error())
	}
	if withDefaults {
		if k.namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace(metav1.NamespaceDefault)
		}
		legacyscheme.Scheme.Default(obj)
	}
	if obj.GetName() == "" {
		return nil, nil, fmt.Errorf("metadata.name is missing")
	}
	complete(obj)
	return obj, fields, nil
}

// complete fills in what the API server never leaves out and upstream's caches cannot do without: the UID of pods and
// resource claims, and a number as resource version of what goes into an assume cache.
func complete(obj object) {
	switch obj.(type) {
	case *corev1.Pod, *resourcev1.ResourceClaim:
		if obj.GetUID() == "" {
			obj.SetUID(types.UID(obj.GetNamespace() + "/" + obj.GetName()))
		}
	}
	switch obj.(type) {
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *resourcev1.ResourceClaim:
		if obj.GetResourceVersion() == "" {
			obj.SetResourceVersion("1")
		}
	}
	obj.SetManagedFields(nil)
}

// visible tells whether the scheduler's pod informer, which selects by phase, would list the pod.
func visible(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// pending returns the pods that wait for a node, in the order given.
func (o *objects) pending() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, obj := range o.byKind["Pod"] {
		if pod := obj.(*corev1.Pod); pod.Spec.NodeName == "" {
			pods = append(pods, pod)
		}
	}
	return pods
}

// podKey is the name under which requests and answers speak of a pod.
func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
