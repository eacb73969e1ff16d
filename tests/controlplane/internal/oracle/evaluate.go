package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// evaluation is one pending pod on its way through one profile.
type evaluation struct {
	*cluster
	fw     framework.Framework
	pod    *corev1.Pod
	answer *PodAnswer
}

// evaluate asks everything about one pending pod.
func (c *cluster) evaluate(pod *corev1.Pod, reserve bool) PodAnswer {
	answer := PodAnswer{
		Pod: podKey(pod), Scheduler: pod.Spec.SchedulerName,
		Nodes: []NodeAnswer{}, ScoreSkip: []string{}, Rejectors: []string{}, PendingPlugins: []string{},
	}
	fw, ok := c.profiles[pod.Spec.SchedulerName]
	if !ok {
		answer.Error = fmt.Sprintf("profile not found for scheduler name %q", pod.Spec.SchedulerName)
		return answer
	}
	if pod.DeletionTimestamp != nil {
		answer.Skipped = fmt.Sprintf("skip schedule deleting pod: %v/%v", pod.Namespace, pod.Name)
	}
	e := &evaluation{cluster: c, fw: fw, pod: pod, answer: &answer}
	answer.PreEnqueue = e.preEnqueue()
	if signature := fw.SignPod(c.ctx, pod); signature != nil {
		text := string(signature)
		answer.Signature = &text
	}
	e.examine()
	if state := e.schedule(); reserve && answer.Host != "" {
		e.reserve(state, answer.Host)
	}
	return answer
}

func (e *evaluation) preEnqueue() *Status {
	for _, plugin := range e.fw.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(e.ctx, e.pod); !status.IsSuccess() {
			return statusOf(status.Clone().WithPlugin(plugin.Name()))
		}
	}
	return nil
}

// newState makes the state of one cycle, with what the scheduler puts into it before the first plugin runs.
func newState() fwk.CycleState {
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	return state
}

// examine filters every node of the snapshot, in its order, and scores those that fit. Upstream's own cycle would stop
// filtering early and would not score a single node.
func (e *evaluation) examine() {
	state := newState()
	result, status, _ := e.fw.RunPreFilterPlugins(e.ctx, state, e.pod)
	e.answer.PreFilter = preFilterOf(result, status, state)
	if !status.IsSuccess() {
		return
	}
	nodes, err := e.snapshot.NodeInfos().List()
	if err != nil {
		e.answer.ScoreError = err.Error()
		return
	}
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		answer := NodeAnswer{Node: node.Node().Name}
		if !result.AllNodes() && !result.NodeNames.Has(answer.Node) {
			answer.Absent = true
			answer.Status = *statusOf(e.absentStatus())
		} else {
			verdict := e.fw.RunFilterPluginsWithNominatedPods(e.ctx, state, e.pod, node)
			answer.Status = *statusOf(verdict)
			if verdict.IsSuccess() {
				feasible = append(feasible, node)
			}
		}
		e.answer.Nodes = append(e.answer.Nodes, answer)
	}
	if len(feasible) == 0 {
		return
	}
	if err := e.score(state, feasible); err != nil {
		e.answer.ScoreError = err.Error()
	}
}

// absentStatus is what upstream's search says of nodes outside the PreFilter result. It is built inside an unexported
// function, from the names of the PreFilter plugins that returned nodes; running PreFilter once more gives these.
func (e *evaluation) absentStatus() *fwk.Status {
	_, _, plugins := e.fw.RunPreFilterPlugins(e.ctx, newState(), e.pod)
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins)))
}

// schedule runs upstream's cycle up to the choice of a host, and PostFilter when no node fits. It returns the cycle's state.
func (e *evaluation) schedule() fwk.CycleState {
	state := newState()
	// The queue too takes a pod with malformed terms; InterPodAffinity says what is wrong with them.
	info, _ := framework.NewPodInfo(e.pod)
	e.rewind()
	// Without a signature in the queued pod, no result of an earlier cycle is reused for this one.
	result, err := e.sched.SchedulePod(e.ctx, e.fw, state, &framework.QueuedPodInfo{PodInfo: info})
	var fit *framework.FitError
	switch {
	case err == nil:
		e.answer.Host, e.answer.EvaluatedNodes, e.answer.FeasibleNodes = result.SuggestedHost, result.EvaluatedNodes, result.FeasibleNodes
	case errors.As(err, &fit):
		e.postFilter(state, fit)
		e.answer.Message = fit.Error()
		e.answer.Rejectors = sorted(fit.Diagnosis.UnschedulablePlugins)
		e.answer.PendingPlugins = sorted(fit.Diagnosis.PendingPlugins)
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
		e.answer.Message = err.Error()
	default:
		e.answer.Error = err.Error()
	}
	return state
}

// postFilter runs the PostFilter plugins and puts their message where FitError.Error looks for it.
func (e *evaluation) postFilter(state fwk.CycleState, fit *framework.FitError) {
	if !e.fw.HasPostFilterPlugins() {
		return
	}
	watch := e.preemptions[e.fw.ProfileName()]
	if watch != nil {
		watch.reset()
	}
	result, status := e.fw.RunPostFilterPlugins(e.ctx, state, e.pod, inOrder{fit.Diagnosis.NodeToStatus})
	fit.Diagnosis.PostFilterMsg = status.Message()
	answer := &PostFilterAnswer{Code: status.Code().String(), Plugin: statusOf(status).Plugin, Message: status.Message(), Victims: []string{}}
	if result != nil && result.Mode() == fwk.ModeOverride {
		answer.Nominated = &result.NominatedNodeName
	}
	if watch != nil {
		watch.settle(e.pod)
		nominated := ""
		if answer.Nominated != nil {
			nominated = *answer.Nominated
		}
		answer.Candidates, answer.Ties = watch.report(e.ctx, nominated)
		for _, candidate := range answer.Candidates {
			if candidate.Node == nominated {
				answer.Victims = candidate.Victims
			}
		}
	}
	e.answer.PostFilter = answer
}

func preFilterOf(result *fwk.PreFilterResult, status *fwk.Status, state fwk.CycleState) *PreFilterAnswer {
	answer := &PreFilterAnswer{Status: *statusOf(status), Skip: sorted(state.GetSkipFilterPlugins())}
	if !result.AllNodes() {
		answer.Nodes = sorted(result.NodeNames)
	}
	return answer
}

// statusOf writes a status down; nil, which upstream uses for success, has no accessors but Code and Message.
func statusOf(status *fwk.Status) *Status {
	answer := &Status{Code: status.Code().String(), Reasons: []string{}}
	if status != nil {
		answer.Plugin = status.Plugin()
		answer.Reasons = append(answer.Reasons, status.Reasons()...)
	}
	return answer
}

// sorted lists a set by name; never nil, so that it becomes [] in JSON.
func sorted(set sets.Set[string]) []string {
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}
