package oracle

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// tieTrials is how often two candidates are ranked against each other to see whether both can win. Upstream walks a map of
// them: Go begins at any of eight places, so that of two entries the one that was put in last comes first but once in eight
// times. Each is put in last in every other trial: 24 overlook a tie once in 10^11 times.
const tieTrials = 24

// preemptionWatch stands between upstream's evaluator and its DefaultPreemption plugin, forwards every call and keeps the
// victims found on each node. Only the random offset is replaced, by 0.
type preemptionWatch struct {
	preemption.Interface
	plugin *defaultpreemption.DefaultPreemption

	mu sync.Mutex
	// room is how many candidates each of upstream's two lists takes: of nodes without a violated budget, and of others.
	room  [2]int32
	found map[string]*extenderv1.Victims
}

// watchPreemption attaches a watch to a plugin, and replaces the eviction of victims, which upstream leaves open to tests, by
// nothing.
func watchPreemption(plugin *defaultpreemption.DefaultPreemption) *preemptionWatch {
	watch := &preemptionWatch{Interface: plugin.Evaluator.Interface, plugin: plugin}
	plugin.Evaluator.Interface = watch
	plugin.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *corev1.Pod, string) error {
		return nil
	}
	return watch
}

// inOrder hands nodes out in the order of the snapshot, where upstream walks a map.
type inOrder struct {
	fwk.NodeToStatusReader
}

func (s inOrder) NodesForStatusCode(lister fwk.NodeInfoLister, code fwk.Code) ([]fwk.NodeInfo, error) {
	nodes, err := lister.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(node fwk.NodeInfo) bool {
		return s.Get(node.Node().Name).Code() != code
	}), nil
}

func (w *preemptionWatch) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = map[string]*extenderv1.Victims{}
}

// GetOffsetAndNumCandidates starts at the first potential node instead of a random one.
func (w *preemptionWatch) GetOffsetAndNumCandidates(nodes int32) (int32, int32) {
	_, candidates := w.Interface.GetOffsetAndNumCandidates(nodes)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room = [2]int32{candidates, candidates}
	return 0, candidates
}

// SelectVictimsOnNode keeps what upstream found, for as long as upstream keeps it: what comes when a list is full is dropped.
func (w *preemptionWatch) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo,
	budgets []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	victims, violations, status := w.Interface.SelectVictimsOnNode(ctx, state, pod, node, budgets)
	if status.IsSuccess() && len(victims) > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		list := min(violations, 1)
		if w.room[list] == 0 {
			return victims, violations, status
		}
		w.room[list]--
		w.found[node.Node().Name] = &extenderv1.Victims{Pods: victims, NumPDBViolations: int64(violations)}
	}
	return victims, violations, status
}

// settle waits for the goroutine in which upstream evicts victims, so that it cannot outlive the case.
func (w *preemptionWatch) settle(pod *corev1.Pod) {
	deadline := time.Now().Add(time.Second)
	for w.plugin.Executor.IsPodRunningPreemption(pod.UID) && time.Now().Before(deadline) {
		runtime.Gosched()
	}
}

// candidate is one node and its victims in upstream's terms.
type candidate struct {
	name    string
	victims *extenderv1.Victims
}

func (c candidate) Name() string                 { return c.name }
func (c candidate) Victims() *extenderv1.Victims { return c.victims }

// report lists the candidates by name, and those that may be nominated in place of the given node.
func (w *preemptionWatch) report(ctx context.Context, nominated string) (all []CandidateAnswer, ties []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	best, preempted := w.found[nominated]
	for node, victims := range w.found {
		all = append(all, CandidateAnswer{Node: node, Victims: podKeys(victims.Pods), PDBViolations: int(victims.NumPDBViolations)})
		if preempted && node != nominated && w.tied(ctx, candidate{nominated, best}, candidate{node, victims}) {
			ties = append(ties, node)
		}
	}
	slices.SortFunc(all, func(a, b CandidateAnswer) int { return strings.Compare(a.Node, b.Node) })
	slices.Sort(ties)
	return all, ties
}

func (w *preemptionWatch) tied(ctx context.Context, best, other candidate) bool {
	pair := []preemption.Candidate{best, other}
	for range tieTrials {
		if w.plugin.Evaluator.SelectCandidate(ctx, pair).Name() == other.name {
			return true
		}
		slices.Reverse(pair)
	}
	return false
}

func podKeys(pods []*corev1.Pod) []string {
	keys := make([]string, 0, len(pods))
	for _, pod := range pods {
		keys = append(keys, podKey(pod))
	}
	return keys
}
