package oracle

import (
	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Step is one of several cycles, one after the other.
type Step struct {
	// RemoveNode is taken out of the cluster before the cycle.
	RemoveNode string `json:"removeNode,omitempty"`
}

// CycleAnswer is what one of several cycles gives.
type CycleAnswer struct {
	Pod string `json:"pod"`
	// Host is empty where the pod fits nowhere, or is being deleted.
	Host string `json:"host"`
	// Batching has what the cycle added to scheduler_batch_attempts_total and scheduler_batch_cache_flushed_total, by result
	// and reason.
	Batching map[string]int `json:"batching"`
}

// batchingLabels are the results and reasons that are counted.
var batchingLabels = struct{ results, reasons []string }{
	results: []string{metrics.BatchAttemptNoHint, metrics.BatchAttemptHintUsed, metrics.BatchAttemptHintNotUsed},
	reasons: []string{
		metrics.BatchFlushPodFailed, metrics.BatchFlushPodSkipped, metrics.BatchFlushNodeMissing, metrics.BatchFlushNodeNotFull,
		metrics.BatchFlushEmptyList, metrics.BatchFlushExpired, metrics.BatchFlushPodIncompatible, metrics.BatchFlushPodNotBatchable,
	},
}

// consecutive runs cycles one after the other: pods are taken from the scheduler's own queue and assumed on their hosts. A
// pod that fits nowhere is dropped, without PostFilter.
func (c *cluster) consecutive(steps []Step) ([]CycleAnswer, error) {
	c.rewind()
	answers := []CycleAnswer{}
	for _, step := range steps {
		if step.RemoveNode != "" {
			if err := c.removeNode(step.RemoveNode); err != nil {
				return nil, err
			}
		}
		if len(c.sched.SchedulingQueue.PodsInActiveQ()) == 0 {
			break
		}
		answer, err := c.oneOfMany()
		if err != nil {
			return nil, err
		}
		answers = append(answers, *answer)
	}
	return answers, nil
}

func (c *cluster) removeNode(name string) error {
	logger := klog.FromContext(c.ctx)
	info, err := c.snapshot.NodeInfos().Get(name)
	if err != nil {
		return err
	}
	return c.sched.Cache.RemoveNode(logger, info.Node())
}

func (c *cluster) oneOfMany() (*CycleAnswer, error) {
	logger := klog.FromContext(c.ctx)
	queued, err := c.sched.NextPod(logger)
	if err != nil {
		return nil, err
	}
	pod := queued.Pod
	queue := c.sched.SchedulingQueue
	defer queue.Done(pod.UID)
	answer := &CycleAnswer{Pod: podKey(pod)}
	if pod.DeletionTimestamp != nil {
		return answer, nil
	}
	if err := c.sched.Cache.UpdateSnapshot(logger, c.snapshot); err != nil {
		return nil, err
	}
	before := batchingCounts(pod.Spec.SchedulerName)
	result, err := c.sched.SchedulePod(c.ctx, c.sched.Profiles[pod.Spec.SchedulerName], newState(), queued)
	answer.Batching = batchingCounts(pod.Spec.SchedulerName)
	for label, count := range before {
		if answer.Batching[label] -= count; answer.Batching[label] == 0 {
			delete(answer.Batching, label)
		}
	}
	queue.DeleteNominatedPodIfExists(pod)
	if err != nil {
		return answer, nil
	}
	answer.Host = result.SuggestedHost
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = answer.Host
	return answer, c.sched.Cache.AssumePod(logger, assumed)
}

func batchingCounts(profile string) map[string]int {
	counts := map[string]int{}
	for _, result := range batchingLabels.results {
		counts[result] = read(metrics.BatchAttemptStats.WithLabelValues(profile, result))
	}
	for _, reason := range batchingLabels.reasons {
		counts[reason] = read(metrics.BatchCacheFlushed.WithLabelValues(profile, reason))
	}
	return counts
}

// read gives the value of a counter; a counter knows how to write itself, but its interface does not say so.
func read(counter any) int {
	var metric dto.Metric
	if writer, ok := counter.(interface{ Write(*dto.Metric) error }); !ok || writer.Write(&metric) != nil {
		return 0
	}
	return int(metric.GetCounter().GetValue())
}
