package oracle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workloads names what pods may ask for in a run of cycles; their shape is part of the README, since the Rust side times the
// same.
var Workloads = []string{
	plainWorkload,
	"required-affinity", "required-anti-affinity", "preferred-affinity", "preferred-anti-affinity", "others-anti-affinity",
	"required-affinity-namespaces", "required-anti-affinity-namespaces", "preferred-affinity-namespaces",
	"preferred-anti-affinity-namespaces",
	"spread-hard", "spread-soft", "spread",
	preemptionWorkload,
}

const (
	plainWorkload      = "plain"
	preemptionWorkload = "preemption"
)

// Deployments, and namespaces where a workload selects them.
const (
	groups     = 10
	namespaces = 100
)

// victimsANode is how many pods fill a node of the preemption workload.
const victimsANode = 4

// withoutSpread is the default configuration less the plugin that would otherwise take most of a cycle's time.
const withoutSpread = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [
 {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}}]}`

func (o CycleOptions) hasAffinity() bool { return strings.Contains(o.Workload, "affinity") }

// config is the configuration of the workload's scheduler; nil for the default.
func (o CycleOptions) config() []byte {
	if o.hasAffinity() {
		return []byte(withoutSpread)
	}
	return nil
}

// objects is the cluster: nodes, the pods that run on them, and what the workload needs besides. Pending pods are in it only
// where upstream looks them up. Its shape is part of the README: the Rust side times the same.
func (o CycleOptions) objects() *objects {
	objs := &objects{byKind: map[string][]any{}}
	add := func(kind string, object any) { objs.byKind[kind] = append(objs.byKind[kind], object) }
	for i := range namespaces {
		add("Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("namespace-%d", i), Labels: map[string]string{"team": fmt.Sprintf("team-%d", i%2)},
		}})
	}
	for i := range o.Nodes {
		name := fmt.Sprintf("node-%d", i)
		add("Node", plainNode(name, i%3))
		if o.Workload != preemptionWorkload {
			add("Pod", o.pod(fmt.Sprintf("running-%d", i), name, i))
			continue
		}
		for k := range victimsANode {
			add("Pod", victim(fmt.Sprintf("running-%d-%d", i, k), name, i, k))
		}
	}
	if o.Workload == preemptionWorkload {
		for group := 0; group < groups; group += 2 {
			add("PodDisruptionBudget", budget(fmt.Sprintf("group-%d", group)))
		}
		for i := range o.warmUp() + o.Cycles {
			add("Pod", o.pending(i))
		}
	}
	return objs
}

// pending is the pod of the cycle with this number.
func (o CycleOptions) pending(number int) *corev1.Pod {
	return o.pod(fmt.Sprintf("pending-%d", number), "", number)
}

// pod is the pod with this number, running where a node is named.
func (o CycleOptions) pod(name, node string, number int) *corev1.Pod {
	switch {
	case o.hasAffinity():
		return affinityPod(o.Workload, name, node, number)
	case strings.HasPrefix(o.Workload, "spread") && node == "":
		return spreadPod(o.Workload, name)
	case o.Workload == preemptionWorkload:
		return preemptor(name)
	}
	return plainPod(name, node)
}

// affinityPod is a plain pod of one of the deployments, with the workload's terms.
func affinityPod(workload, name, node string, number int) *corev1.Pod {
	pod := plainPod(name, node)
	group := fmt.Sprintf("group-%d", number/2%groups)
	term := corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": group}},
	}
	kind, selectsNamespaces := strings.CutSuffix(workload, "-namespaces")
	if selectsNamespaces {
		pod.Namespace = fmt.Sprintf("namespace-%d", number%namespaces)
		term.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "team-0"}}
	}
	if kind == "required-affinity" || kind == "preferred-affinity" {
		term.TopologyKey = corev1.LabelTopologyZone
	}
	required := []corev1.PodAffinityTerm{term}
	preferred := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
	affinity := &corev1.Affinity{}
	switch kind {
	case "required-affinity":
		affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	case "preferred-affinity":
		affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	case "preferred-anti-affinity":
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	case "others-anti-affinity":
		if node == "" {
			return pod
		}
		fallthrough
	case "required-anti-affinity":
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	}
	pod.Labels["group"] = group
	pod.Spec.Affinity = affinity
	return pod
}

// spreadPod is a plain pod with a hard constraint on zones, a soft one on nodes, or both.
func spreadPod(workload, name string) *corev1.Pod {
	pod := plainPod(name, "")
	constrain := func(key string, action corev1.UnsatisfiableConstraintAction) {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: action,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		})
	}
	if workload != "spread-soft" {
		constrain(corev1.LabelTopologyZone, corev1.DoNotSchedule)
	}
	if workload != "spread-hard" {
		constrain(corev1.LabelHostname, corev1.ScheduleAnyway)
	}
	return pod
}

// victim is the k-th pod on a node that it fills with others of its kind, each of another priority.
func victim(name, node string, number, k int) *corev1.Pod {
	pod := plainPod(name, node)
	pod.Labels["group"] = fmt.Sprintf("group-%d", number%groups)
	pod.Spec.Priority = new(int32(k))
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("8")
	pod.Status.StartTime = &metav1.Time{Time: time.Unix(int64(number), 0)}
	return pod
}

// preemptor is a pod for which two victims have to go.
func preemptor(name string) *corev1.Pod {
	pod := plainPod(name, "")
	pod.Spec.Priority = new(int32(100))
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("12")
	return pod
}

// budget lets one pod of the group go.
func budget(group string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: group},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": group}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
	}
}
