package oracle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// score scores the nodes that fit: plugin by plugin for raw and normalised values, and once more through the framework for
// the totals that count.
func (e *evaluation) score(state fwk.CycleState, feasible []fwk.NodeInfo) error {
	if !e.fw.HasScorePlugins() {
		return nil
	}
	status := e.fw.RunPreScorePlugins(e.ctx, state, e.pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	e.answer.ScoreSkip = sorted(state.GetSkipScorePlugins())
	answers := map[string]*NodeAnswer{}
	for i := range e.answer.Nodes {
		if node := &e.answer.Nodes[i]; node.Code == fwk.Success.String() {
			node.Scores = map[string]Score{}
			answers[node.Node] = node
		}
	}
	for _, configured := range e.fw.ListPlugins().Score.Enabled {
		if state.GetSkipScorePlugins().Has(configured.Name) {
			continue
		}
		plugin, ok := e.instances[e.fw.ProfileName()][configured.Name].(fwk.ScorePlugin)
		if !ok {
			return fmt.Errorf("%s does not score", configured.Name)
		}
		scores, err := scoreAlone(e.ctx, plugin, int64(configured.Weight), state, e.pod, feasible)
		if err != nil {
			return err
		}
		for node, score := range scores {
			answers[node].Scores[configured.Name] = score
		}
	}
	return e.total(state, feasible, answers)
}

// total takes the sums from upstream, and complains if the parts do not add up to them.
func (e *evaluation) total(state fwk.CycleState, feasible []fwk.NodeInfo, answers map[string]*NodeAnswer) error {
	all, status := e.fw.RunScorePlugins(e.ctx, state, e.pod, feasible)
	if !status.IsSuccess() {
		return status.AsError()
	}
	for _, node := range all {
		answers[node.Name].Total = &node.TotalScore
		for _, part := range node.Scores {
			if mine := answers[node.Name].Scores[part.Name]; mine.Weighted != part.Score {
				return fmt.Errorf("%s on %s: the framework says %d, the plugin alone %+v", part.Name, node.Name, part.Score, mine)
			}
		}
	}
	return nil
}

// scoreAlone runs Score and NormalizeScore of one plugin over nodes.
func scoreAlone(ctx context.Context, plugin fwk.ScorePlugin, weight int64, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (map[string]Score, error) {
	list := make(fwk.NodeScoreList, 0, len(nodes))
	scores := make(map[string]Score, len(nodes))
	for _, node := range nodes {
		raw, status := plugin.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, fmt.Errorf("%s on %s: %w", plugin.Name(), node.Node().Name, status.AsError())
		}
		list = append(list, fwk.NodeScore{Name: node.Node().Name, Score: raw})
		scores[node.Node().Name] = Score{Raw: raw}
	}
	if extensions := plugin.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, list); !status.IsSuccess() {
			return nil, fmt.Errorf("%s: %w", plugin.Name(), status.AsError())
		}
	}
	for _, entry := range list {
		scores[entry.Name] = Score{Raw: scores[entry.Name].Raw, Normalized: entry.Score, Weighted: entry.Score * weight}
	}
	return scores, nil
}
