// Command schema prints what the Go types of the API, and its OpenAPI definitions, say of its objects: the members of each
// type, in which form they are written when they are empty, which number each has in protobuf, by which members a strategic
// merge patch tells the elements of a list apart, and by which a server-side apply does.
//
// A line without indent names a type, the lines below it are its members: name, type, marks. A type that is followed by `a`
// belongs to one owner as a whole. Types are
//
//	bool string[:name] int32[:name] int64[:name] bytes raw time microtime quantity intorstring
//	*T  []T  map[string]T  and the names of other lines
//
// and marks are
//
//	o     left out when empty (omitempty)        z     left out when it is the zero value (omitzero)
//	m=K   a list that is merged by member K      m     a list of plain values that is merged
//	r     a patch of it may say which keys stay   x     a patch replaces it whole
//	#N    its number in protobuf; #M.N where it is part of a message that JSON does not show
//	k=K,L a list whose elements are owned one by one, told apart by members K and L
//	s     the same for plain values               a     a map that is owned as a whole
package main

import (
	"fmt"
	"os"
	"path"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

var roots = []any{
	corev1.Pod{}, corev1.Node{}, corev1.Event{}, corev1.Namespace{}, corev1.Service{}, corev1.ReplicationController{},
	corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.ConfigMap{}, corev1.LimitRange{}, corev1.Secret{},
	corev1.ServiceAccount{}, corev1.Binding{}, eventsv1.Event{}, coordinationv1.Lease{},
	appsv1.ReplicaSet{}, appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, appsv1.ControllerRevision{},
	batchv1.Job{}, batchv1.CronJob{}, policyv1.PodDisruptionBudget{}, policyv1.Eviction{}, schedulingv1.PriorityClass{},
	nodev1.RuntimeClass{}, storagev1.StorageClass{}, storagev1.CSINode{}, storagev1.CSIDriver{},
	storagev1.CSIStorageCapacity{}, storagev1.VolumeAttachment{}, storagev1.VolumeAttributesClass{},
	resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{}, resourcev1.ResourceSlice{}, resourcev1.DeviceClass{},
	metav1.DeleteOptions{}, autoscalingv1.Scale{},
}

// Types that read and write themselves.
var plain = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microtime",
	reflect.TypeFor[metav1.FieldsV1]():      "raw",
	reflect.TypeFor[runtime.RawExtension](): "raw",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intorstring",
	reflect.TypeFor[[]byte]():               "bytes",
}

// What the API says of its types in OpenAPI, by the names that they have there.
var definitions = openapi.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })

func main() {
	known := map[reflect.Type][]string{}
	for _, root := range roots {
		visit(reflect.TypeOf(root), known)
	}
	texts, atomic := map[string][]string{}, map[string]string{}
	for t, lines := range known {
		if before, twice := texts[nameOf(t)]; twice {
			fmt.Fprintf(os.Stderr, "schema: two types are called %s: %v\n", nameOf(t), before)
			os.Exit(1)
		}
		texts[nameOf(t)] = lines
		if definitionOf(t).Schema.Extensions["x-kubernetes-map-type"] == "atomic" {
			atomic[nameOf(t)] = " a"
		}
	}
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(name + atomic[name])
		for _, line := range texts[name] {
			fmt.Println(" " + line)
		}
	}
}

// nameOf tells the types of several groups apart: core/v1.Pod.
func nameOf(t reflect.Type) string {
	version := path.Base(t.PkgPath())
	return path.Base(path.Dir(t.PkgPath())) + "/" + version + "." + t.Name()
}

func visit(t reflect.Type, known map[reflect.Type][]string) {
	if _, done := known[t]; done {
		return
	}
	known[t] = nil
	known[t] = members(t, definitionOf(t), "", known)
}

func definitionOf(t reflect.Type) common.OpenAPIDefinition {
	named, is := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string })
	if !is {
		fmt.Fprintf(os.Stderr, "schema: %s has no name in OpenAPI\n", t)
		os.Exit(1)
	}
	definition, found := definitions[named.OpenAPIModelName()]
	if !found {
		fmt.Fprintf(os.Stderr, "schema: OpenAPI has no %s\n", named.OpenAPIModelName())
		os.Exit(1)
	}
	return definition
}

// The members of a type, whose own numbers in protobuf follow prefix.
func members(t reflect.Type, definition common.OpenAPIDefinition, prefix string, known map[reflect.Type][]string) []string {
	var lines []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		number := ""
		if wire := strings.Split(field.Tag.Get("protobuf"), ","); len(wire) > 1 {
			number = prefix + wire[1]
		}
		if name == "" && field.Anonymous {
			inner := number + "."
			if number == "" {
				// The version and kind are told before the message.
				inner = "-"
			}
			lines = append(lines, members(field.Type, definition, inner, known)...)
			continue
		}
		if name == "-" || !field.IsExported() {
			continue
		}
		line := name + " " + typeText(field.Type, known)
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				line += " o"
			case "omitzero":
				line += " z"
			case "inline", "":
			default:
				fmt.Fprintf(os.Stderr, "schema: %s.%s has the option %s\n", t, name, option)
				os.Exit(1)
			}
		}
		strategy := field.Tag.Get("patchStrategy")
		key := field.Tag.Get("patchMergeKey")
		for part := range strings.SplitSeq(strategy, ",") {
			switch part {
			case "merge":
				if key == "" {
					line += " m"
				} else {
					line += " m=" + key
				}
			case "retainKeys":
				line += " r"
			case "replace":
				line += " x"
			}
		}
		if number != "" && prefix != "-" {
			line += " #" + number
		}
		lines = append(lines, line+ownership(definition.Schema.Properties[name].Extensions))
	}
	return lines
}

// How a member is owned. A list of which nothing is said is owned as a whole, anything else by its members.
func ownership(extensions spec.Extensions) string {
	switch extensions["x-kubernetes-list-type"] {
	case "map":
		var keys []string
		for _, key := range extensions["x-kubernetes-list-map-keys"].([]interface{}) {
			keys = append(keys, key.(string))
		}
		return " k=" + strings.Join(keys, ",")
	case "set":
		return " s"
	}
	if extensions["x-kubernetes-map-type"] == "atomic" {
		return " a"
	}
	return ""
}

func typeText(t reflect.Type, known map[reflect.Type][]string) string {
	if text, found := plain[t]; found {
		return text
	}
	named := func(kind string) string {
		if t.PkgPath() == "" {
			return kind
		}
		return kind + ":" + t.String()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeText(t.Elem(), known)
	case reflect.Slice:
		return "[]" + typeText(t.Elem(), known)
	case reflect.Map:
		text := "map[string]" + typeText(t.Elem(), known)
		if t.PkgPath() != "" || t.Key().PkgPath() != "" {
			text += ":" + t.String()
		}
		return text
	case reflect.Struct:
		visit(t, known)
		return nameOf(t)
	case reflect.Bool:
		return named("bool")
	case reflect.String:
		return named("string")
	case reflect.Int32:
		return named("int32")
	case reflect.Int64:
		return named("int64")
	}
	fmt.Fprintf(os.Stderr, "schema: a member of type %s\n", t)
	os.Exit(1)
	return ""
}
