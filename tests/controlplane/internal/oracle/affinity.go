package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AffinityWorkloads names what pods may ask of each other in a run of cycles; their shape is part of the README, since the
// Rust side times the same.
var AffinityWorkloads = []string{
	"required-affinity", "required-anti-affinity", "preferred-affinity", "preferred-anti-affinity", "others-anti-affinity",
	"required-affinity-namespaces", "required-anti-affinity-namespaces", "preferred-anti-affinity-namespaces",
	spreadWorkload,
}

// spreadWorkload gives the pods that are timed a hard constraint on zones and a soft one on nodes.
const spreadWorkload = "spread"

func spreadPod(name, node string) *corev1.Pod {
	pod := plainPod(name, node)
	if node != "" {
		return pod
	}
	constraint := func(key string, action corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: action,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		}
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		constraint(corev1.LabelTopologyZone, corev1.DoNotSchedule), constraint(corev1.LabelHostname, corev1.ScheduleAnyway),
	}
	return pod
}

// Deployments, and namespaces where a workload selects them.
const (
	affinityGroups     = 10
	affinityNamespaces = 100
)

// withoutSpread is the default configuration less the plugin that would otherwise take most of a cycle's time.
const withoutSpread = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [
 {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}}]}`

// affinityNamespaceObjects are the namespaces of a workload that selects them: every second one is selected.
func affinityNamespaceObjects() []any {
	var all []any
	for i := range affinityNamespaces {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("namespace-%d", i), Labels: map[string]string{"team": fmt.Sprintf("team-%d", i%2)},
		}})
	}
	return all
}

// affinityPod is a plain pod of one of the deployments, with the workload's terms.
func affinityPod(workload, name, node string, number int) *corev1.Pod {
	if workload == spreadWorkload {
		return spreadPod(name, node)
	}
	pod := plainPod(name, node)
	group := fmt.Sprintf("group-%d", number/2%affinityGroups)
	pod.Labels["group"] = group
	term := corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": group}},
	}
	const suffix = "-namespaces"
	kind := workload
	if len(kind) > len(suffix) && kind[len(kind)-len(suffix):] == suffix {
		kind = kind[:len(kind)-len(suffix)]
		pod.Namespace = fmt.Sprintf("namespace-%d", number%affinityNamespaces)
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
	case "required-anti-affinity":
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
	case "others-anti-affinity":
		if node != "" {
			affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
		} else {
			pod.Labels = map[string]string{"app": "plain"}
		}
	}
	pod.Spec.Affinity = affinity
	return pod
}
