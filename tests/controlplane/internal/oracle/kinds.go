package oracle

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// object is an API object of a kind that the scheduler reads.
type object interface {
	metav1.Object
	runtime.Object
}

// kind describes one kind that the scheduler reads through an informer.
type kind struct {
	version, name string
	namespaced    bool
	// resource is the name of its cluster events; empty if it has none.
	resource fwk.EventResource
	empty    func() object
}

// kinds lists them all. PriorityClass has no informer in the scheduler; it is here because admission reads it, so that a
// cluster file may hold it.
var kinds = []kind{
	{"v1", "Pod", true, fwk.Pod, func() object { return &corev1.Pod{} }},
	{"v1", "Node", false, fwk.Node, func() object { return &corev1.Node{} }},
	{"v1", "Namespace", false, "", func() object { return &corev1.Namespace{} }},
	{"v1", "Service", true, "", func() object { return &corev1.Service{} }},
	{"v1", "ReplicationController", true, "", func() object { return &corev1.ReplicationController{} }},
	{"v1", "PersistentVolume", false, fwk.PersistentVolume, func() object { return &corev1.PersistentVolume{} }},
	{"v1", "PersistentVolumeClaim", true, fwk.PersistentVolumeClaim, func() object { return &corev1.PersistentVolumeClaim{} }},
	{"apps/v1", "ReplicaSet", true, "", func() object { return &appsv1.ReplicaSet{} }},
	{"apps/v1", "StatefulSet", true, "", func() object { return &appsv1.StatefulSet{} }},
	{"policy/v1", "PodDisruptionBudget", true, "", func() object { return &policyv1.PodDisruptionBudget{} }},
	{"storage.k8s.io/v1", "StorageClass", false, fwk.StorageClass, func() object { return &storagev1.StorageClass{} }},
	{"storage.k8s.io/v1", "CSINode", false, fwk.CSINode, func() object { return &storagev1.CSINode{} }},
	{"storage.k8s.io/v1", "CSIDriver", false, fwk.CSIDriver, func() object { return &storagev1.CSIDriver{} }},
	{"storage.k8s.io/v1", "CSIStorageCapacity", true, fwk.CSIStorageCapacity, func() object { return &storagev1.CSIStorageCapacity{} }},
	{"storage.k8s.io/v1", "VolumeAttachment", false, fwk.VolumeAttachment, func() object { return &storagev1.VolumeAttachment{} }},
	{"resource.k8s.io/v1", "ResourceClaim", true, fwk.ResourceClaim, func() object { return &resourcev1.ResourceClaim{} }},
	{"resource.k8s.io/v1", "ResourceSlice", false, fwk.ResourceSlice, func() object { return &resourcev1.ResourceSlice{} }},
	{"resource.k8s.io/v1", "DeviceClass", false, fwk.DeviceClass, func() object { return &resourcev1.DeviceClass{} }},
	{"resource.k8s.io/v1beta2", "DeviceTaintRule", false, "", func() object { return &resourcev1beta2.DeviceTaintRule{} }},
	{"scheduling.k8s.io/v1alpha2", "PodGroup", true, fwk.PodGroup, func() object { return &schedulingv1alpha2.PodGroup{} }},
	{"scheduling.k8s.io/v1", "PriorityClass", false, "", func() object { return &schedulingv1.PriorityClass{} }},
}

// kindOf finds a kind by group-version and name, or by name alone when version is empty.
func kindOf(version, name string) (kind, bool) {
	for _, k := range kinds {
		if k.name == name && (version == "" || k.version == version) {
			return k, true
		}
	}
	return kind{}, false
}
