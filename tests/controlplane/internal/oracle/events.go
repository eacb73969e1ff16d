package oracle

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// delivery is a cluster event as the queue gets it: with the objects that go to the hints, and the pods that it is for.
type delivery struct {
	event    fwk.ClusterEvent
	old, new any
	// concerns tells whether a pending pod is asked at all; nil means every one.
	concerns func(*corev1.Pod) bool
}

// answerEvent derives the cluster events of a change and calls every matching hint for one pod. The listers keep showing the
// objects of the case: a change is announced, not carried out.
func (c *cluster) answerEvent(index int, req EventRequest, withDefaults bool) EventAnswer {
	answer := EventAnswer{Pod: req.Pod, Index: index, ClusterEvents: []string{}, Hints: []Hint{}}
	if err := c.tryEvent(req, withDefaults, &answer); err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func (c *cluster) tryEvent(req EventRequest, withDefaults bool, answer *EventAnswer) error {
	pod, ok := podOf(c.factory, req.Pod)
	if !ok {
		return fmt.Errorf("pod %q is not among the objects", req.Pod)
	}
	fw, ok := c.profiles[pod.Spec.SchedulerName]
	if !ok {
		return fmt.Errorf("profile not found for scheduler name %q", pod.Spec.SchedulerName)
	}
	k, ok := kindOf("", req.Kind)
	if !ok || k.resource == "" {
		return fmt.Errorf("kind %q has no cluster events", req.Kind)
	}
	oldObj, newObj, err := eventObjects(k, req, withDefaults)
	if err != nil {
		return err
	}
	deliveries, err := c.deliveries(k, pod, oldObj, newObj)
	if err != nil {
		return err
	}
	all, err := registrations(c.ctx, fw)
	if err != nil {
		return err
	}
	logger := klog.FromContext(c.ctx)
	for _, d := range deliveries {
		if d.concerns != nil && !d.concerns(pod) {
			continue
		}
		answer.ClusterEvents = append(answer.ClusterEvents, d.event.Label())
		asked := pod
		if updated, ok := d.new.(*corev1.Pod); ok && updated.UID == pod.UID {
			asked = updated // the queue replaces its copy before it asks
		}
		for _, r := range all {
			if !framework.MatchClusterEvents(r.event, d.event) {
				continue
			}
			hint, err := r.hint(logger, asked, d.old, d.new)
			entry := Hint{Plugin: r.plugin, Event: d.event.Label(), Registered: r.label(), Hint: hint.String()}
			if err != nil {
				entry.Hint, entry.Error = fwk.Queue.String(), err.Error() // an error counts as Queue
			}
			answer.Hints = append(answer.Hints, entry)
		}
	}
	return nil
}

// eventObjects decodes the two sides of a change and checks that the action needs exactly those.
func eventObjects(k kind, req EventRequest, withDefaults bool) (oldObj, newObj object, err error) {
	side := func(name string, raw json.RawMessage, wanted bool) (object, error) {
		present := len(raw) > 0 && string(raw) != "null"
		if present != wanted {
			return nil, fmt.Errorf("action %q: %s must be given: %t", req.Action, name, wanted)
		}
		if !present {
			return nil, nil
		}
		obj, _, err := decode(k, raw, withDefaults)
		return obj, err
	}
	switch req.Action {
	case "add", "update", "delete":
	default:
		return nil, nil, fmt.Errorf("unknown action %q", req.Action)
	}
	if oldObj, err = side("old", req.Old, req.Action != "add"); err != nil {
		return nil, nil, err
	}
	newObj, err = side("new", req.New, req.Action != "delete")
	return oldObj, newObj, err
}

// deliveries turns a change into cluster events, as the scheduler's event handlers do.
func (c *cluster) deliveries(k kind, pending *corev1.Pod, oldObj, newObj object) ([]delivery, error) {
	switch k.name {
	case "Pod":
		oldPod, _ := oldObj.(*corev1.Pod)
		newPod, _ := newObj.(*corev1.Pod)
		return podDeliveries(pending, oldPod, newPod), nil
	case "Node":
		if oldObj != nil && newObj != nil {
			oldNode, newNode := oldObj.(*corev1.Node), newObj.(*corev1.Node)
			return deliver(framework.NodeSchedulingPropertiesChange(newNode, oldNode), oldNode, newNode), nil
		}
	}
	action := fwk.Update
	if oldObj == nil {
		action = fwk.Add
	} else if newObj == nil {
		action = fwk.Delete
	}
	if k.name != "Node" {
		if heard, err := c.listens(k.resource, action); err != nil || !heard {
			return nil, err
		}
	}
	return deliver([]fwk.ClusterEvent{{Resource: k.resource, ActionType: action}}, plain(oldObj), plain(newObj)), nil
}

// podDeliveries tells apart pods on a node, whose changes concern everyone, and pods that wait, whose updates concern
// themselves and whose nomination concerns those that rank no higher.
func podDeliveries(pending, oldPod, newPod *corev1.Pod) []delivery {
	onNode := func(pod *corev1.Pod) bool { return pod != nil && pod.Spec.NodeName != "" }
	switch {
	case onNode(oldPod) && newPod == nil:
		return deliver([]fwk.ClusterEvent{framework.EventAssignedPodDelete}, oldPod, nil)
	case onNode(oldPod):
		return deliver(framework.PodSchedulingPropertiesChange(newPod, oldPod), oldPod, newPod)
	case onNode(newPod):
		return deliver([]fwk.ClusterEvent{framework.EventAssignedPodAdd}, nil, newPod)
	case oldPod == nil:
		if utilfeature.DefaultFeatureGate.Enabled(features.GangScheduling) {
			return deliver([]fwk.ClusterEvent{framework.EventUnscheduledPodAdd}, nil, newPod)
		}
		return nil
	}
	var all []delivery
	unchanged := newPod != nil && newPod.ResourceVersion != "" && newPod.ResourceVersion == oldPod.ResourceVersion
	if unchanged {
		return nil
	}
	if newPod != nil && newPod.UID == pending.UID {
		all = deliver(framework.PodSchedulingPropertiesChange(newPod, oldPod), oldPod, newPod)
	}
	if node := oldPod.Status.NominatedNodeName; node != "" && (newPod == nil || newPod.Status.NominatedNodeName != node) {
		lost := deliver([]fwk.ClusterEvent{framework.EventAssignedPodDelete}, oldPod, nil)
		lost[0].concerns = func(pod *corev1.Pod) bool {
			return corev1helpers.PodPriority(pod) <= corev1helpers.PodPriority(oldPod)
		}
		all = append(all, lost...)
	}
	return all
}

func deliver(events []fwk.ClusterEvent, oldObj, newObj any) []delivery {
	all := make([]delivery, 0, len(events))
	for _, event := range events {
		all = append(all, delivery{event: event, old: oldObj, new: newObj})
	}
	return all
}

// plain gives hints an untyped nil for a missing side, as upstream does.
func plain(obj object) any {
	if obj == nil {
		return nil
	}
	return obj
}
