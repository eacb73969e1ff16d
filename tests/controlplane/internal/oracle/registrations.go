package oracle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// registration is one cluster event that a plugin asked for, and its hint.
type registration struct {
	plugin string
	event  fwk.ClusterEvent
	hint   fwk.QueueingHintFn
}

// label prints a registration as resource and action bits in decimal.
func (r registration) label() string {
	return fmt.Sprintf("%s/%d", r.event.Resource, r.event.ActionType)
}

// alwaysQueue stands for a missing hint.
func alwaysQueue(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil }

// registrations collects what the plugins of a profile registered, by plugin name. As in upstream's scheduler, a missing hint
// means Queue, hints count only with the feature gate on, and who registers Node Add without UpdateNodeTaint gets the latter.
func registrations(ctx context.Context, fw framework.Framework) ([]registration, error) {
	hintsOn := utilfeature.DefaultFeatureGate.Enabled(features.SchedulerQueueingHints)
	var all []registration
	for _, extension := range fw.EnqueueExtensions() {
		events, err := extension.EventsToRegister(ctx)
		if err != nil {
			return nil, err
		}
		var nodeActions fwk.ActionType
		for _, event := range events {
			hint := event.QueueingHintFn
			if hint == nil || !hintsOn {
				hint = alwaysQueue
			}
			if event.Event.Resource == fwk.Node {
				nodeActions |= event.Event.ActionType
			}
			all = append(all, registration{extension.Name(), event.Event, hint})
		}
		if nodeActions&fwk.Add != 0 && nodeActions&fwk.UpdateNodeTaint == 0 {
			taint := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}
			all = append(all, registration{extension.Name(), taint, alwaysQueue})
		}
	}
	slices.SortStableFunc(all, func(a, b registration) int { return strings.Compare(a.plugin, b.plugin) })
	return all, nil
}

// registered prints the registrations of the first profile.
func (c *cluster) registered() (map[string][]string, error) {
	all, err := registrations(c.ctx, c.profiles[c.first])
	if err != nil {
		return nil, err
	}
	byPlugin := map[string][]string{}
	for _, r := range all {
		byPlugin[r.plugin] = append(byPlugin[r.plugin], r.label())
	}
	return byPlugin, nil
}

// listens tells whether any profile registered one of the actions on a resource. Except for pods and nodes, upstream has no
// event handler otherwise.
func (c *cluster) listens(resource fwk.EventResource, action fwk.ActionType) (bool, error) {
	for _, fw := range c.profiles {
		all, err := registrations(c.ctx, fw)
		if err != nil {
			return false, err
		}
		for _, r := range all {
			if r.event.Resource == resource && r.event.ActionType&action != 0 {
				return true, nil
			}
		}
	}
	return false, nil
}
