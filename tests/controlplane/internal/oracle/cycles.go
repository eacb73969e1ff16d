package oracle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// CycleOptions describes a run of scheduling cycles.
type CycleOptions struct {
	Nodes       int
	Parallelism int32
	// Percentage is percentageOfNodesToScore; 0 lets the scheduler choose.
	Percentage int32
	// Assume puts each pod on its host, so that the next snapshot differs by one node; otherwise every cycle is the same.
	Assume bool
	// Affinity is one of AffinityWorkloads; empty for plain pods.
	Affinity string
	// Cycles is how many are timed, after as many as a tenth of them to warm up.
	Cycles int
}

// TimeCycles times what upstream does for one pod between taking it from the queue and having chosen a host: the update of
// the snapshot and SchedulePod.
func TimeCycles(o CycleOptions) (time.Duration, error) {
	var raw []byte
	if o.Affinity != "" && o.Affinity != spreadWorkload {
		raw = []byte(withoutSpread)
	}
	cfg, err := parseConfig(raw)
	if err != nil {
		return 0, err
	}
	cfg.PercentageOfNodesToScore = &o.Percentage
	c, err := newCluster(o.objects(), cfg, o.Parallelism, 0)
	if err != nil {
		return 0, err
	}
	defer c.close()
	warmUp := o.Cycles / 10
	var total time.Duration
	for i := range warmUp + o.Cycles {
		took, err := c.cycle(o.pod(fmt.Sprintf("pending-%d", i), "", i), o.Assume)
		if err != nil {
			return 0, err
		}
		if i >= warmUp {
			total += took
		}
	}
	return total, nil
}

// cycle times one pod. Assuming it is not part of the time.
func (c *cluster) cycle(pod *corev1.Pod, assume bool) (time.Duration, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return 0, err
	}
	logger := klog.FromContext(c.ctx)
	queued := &framework.QueuedPodInfo{PodInfo: info}
	start := time.Now()
	if err := c.sched.Cache.UpdateSnapshot(logger, c.snapshot); err != nil {
		return 0, err
	}
	result, err := c.sched.SchedulePod(c.ctx, c.sched.Profiles[c.first], newState(), queued)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if assume {
		pod.Spec.NodeName = result.SuggestedHost
		err = c.sched.Cache.AssumePod(logger, pod)
	}
	return took, err
}

// pod is the pod with this number, running where a node is named.
func (o CycleOptions) pod(name, node string, number int) *corev1.Pod {
	if o.Affinity != "" {
		return affinityPod(o.Affinity, name, node, number)
	}
	return plainPod(name, node)
}

// objects has as many running pods as nodes, one each. Its shape is part of the README: the Rust side times the same.
func (o CycleOptions) objects() *objects {
	objs := &objects{byKind: map[string][]any{}}
	if o.Affinity != "" {
		objs.byKind["Namespace"] = affinityNamespaceObjects()
	}
	for i := range o.Nodes {
		name := fmt.Sprintf("node-%d", i)
		objs.byKind["Node"] = append(objs.byKind["Node"], plainNode(name, i%3))
		objs.byKind["Pod"] = append(objs.byKind["Pod"], o.pod(fmt.Sprintf("running-%d", i), name, i))
	}
	return objs
}

func plainNode(name string, zone int) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:     name,
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", zone),
		}},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
	for image := range 4 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example/image-%d:v1", image)}, SizeBytes: int64(image+1) * 100 << 20,
		})
	}
	return node
}

func plainPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "plain"}},
		Spec: corev1.PodSpec{
			NodeName: node, SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/image-0:v1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("500m"),
					corev1.ResourceMemory: resource.MustParse("512Mi"),
				},
			}}},
		},
	}
}
