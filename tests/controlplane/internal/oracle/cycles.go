package oracle

import (
	"errors"
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
	// Workload is one of Workloads.
	Workload string
	// Cycles is how many are timed, after as many as a tenth of them to warm up.
	Cycles int
}

func (o CycleOptions) warmUp() int { return o.Cycles / 10 }

// TimeCycles times what upstream does for one pod between taking it from the queue and having chosen a host: the update of
// the snapshot and SchedulePod; and for one that fits nowhere PostFilter, with the eviction of victims replaced by nothing.
func TimeCycles(o CycleOptions) (time.Duration, error) {
	cfg, err := parseConfig(o.config())
	if err != nil {
		return 0, err
	}
	cfg.PercentageOfNodesToScore = &o.Percentage
	c, err := newCluster(o.objects(), cfg, o.Parallelism, 0)
	if err != nil {
		return 0, err
	}
	defer c.close()
	var total time.Duration
	for i := range o.warmUp() + o.Cycles {
		var took time.Duration
		if o.Workload == preemptionWorkload {
			took, err = c.preemptingCycle(o.pending(i))
		} else {
			took, err = c.cycle(o.pending(i), o.Assume)
		}
		if err != nil {
			return 0, err
		}
		if i >= o.warmUp() {
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

// preemptingCycle times a pod that fits nowhere, up to the nomination of a node; the cluster stays as it is. The profile is the
// one whose plugins are known, so that victims are not evicted.
func (c *cluster) preemptingCycle(pod *corev1.Pod) (time.Duration, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return 0, err
	}
	watch := c.preemptions[c.first]
	// Upstream's own interface again: nothing is watched here, and the offset is random.
	watch.plugin.Evaluator.Interface = watch.Interface
	fw, state := c.profiles[c.first], newState()
	queued := &framework.QueuedPodInfo{PodInfo: info}
	start := time.Now()
	if err := c.sched.Cache.UpdateSnapshot(klog.FromContext(c.ctx), c.snapshot); err != nil {
		return 0, err
	}
	_, err = c.sched.SchedulePod(c.ctx, fw, state, queued)
	var fit *framework.FitError
	if !errors.As(err, &fit) {
		return 0, fmt.Errorf("the pod fits somewhere: %w", err)
	}
	result, status := fw.RunPostFilterPlugins(c.ctx, state, pod, fit.Diagnosis.NodeToStatus)
	took := time.Since(start)
	if !status.IsSuccess() || result.NominatedNodeName == "" {
		return 0, fmt.Errorf("no node is nominated: %s", status.Message())
	}
	watch.settle(pod)
	return took, nil
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
