package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// answerDirect runs one extension point of one plugin alone, for verdicts that no pending pod of a whole cycle can reach.
func (c *cluster) answerDirect(req DirectRequest, withDefaults bool) DirectAnswer {
	answer := DirectAnswer{Plugin: req.Plugin, Point: req.Point}
	if err := c.tryDirect(req, withDefaults, &answer); err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func (c *cluster) tryDirect(req DirectRequest, withDefaults bool, answer *DirectAnswer) error {
	k, _ := kindOf("v1", "Pod")
	obj, _, err := decode(k, req.Pod, withDefaults)
	if err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	pod := obj.(*corev1.Pod)
	profileName := pod.Spec.SchedulerName
	if profileName == "" {
		profileName = c.first
	}
	plugin, ok := c.instances[profileName][req.Plugin]
	if !ok {
		return fmt.Errorf("plugin %q is not part of profile %q", req.Plugin, profileName)
	}
	nodes, err := c.nodes(req.Node)
	if err != nil {
		return err
	}
	d := &direct{cluster: c, req: req, pod: pod, plugin: plugin, state: newState(), nodes: nodes, answer: answer}
	return d.run(profileName)
}

// nodes returns one node of the snapshot, or all.
func (c *cluster) nodes(name string) ([]fwk.NodeInfo, error) {
	if name == "" {
		return c.snapshot.NodeInfos().List()
	}
	node, err := c.snapshot.NodeInfos().Get(name)
	return []fwk.NodeInfo{node}, err
}

// direct is one such call.
type direct struct {
	*cluster
	req    DirectRequest
	pod    *corev1.Pod
	plugin fwk.Plugin
	state  fwk.CycleState
	nodes  []fwk.NodeInfo
	answer *DirectAnswer
}

func (d *direct) run(profileName string) error {
	switch d.req.Point {
	case "PreEnqueue":
		plugin, ok := d.plugin.(fwk.PreEnqueuePlugin)
		if !ok {
			return d.lacks()
		}
		d.answer.Status = statusOf(plugin.PreEnqueue(d.ctx, d.pod))
	case "PreFilter":
		if _, ok := d.plugin.(fwk.PreFilterPlugin); !ok {
			return d.lacks()
		}
		return d.preFilter()
	case "Filter":
		plugin, ok := d.plugin.(fwk.FilterPlugin)
		if !ok {
			return d.lacks()
		}
		if d.req.Node == "" {
			return fmt.Errorf("Filter needs a node")
		}
		if err := d.preFilter(); err != nil {
			return err
		}
		d.answer.Status = statusOf(plugin.Filter(d.ctx, d.state, d.pod, d.nodes[0]))
	case "Score":
		return d.score(profileName)
	default:
		return fmt.Errorf("unknown point %q", d.req.Point)
	}
	return nil
}

func (d *direct) lacks() error { return fmt.Errorf("%s has no %s", d.req.Plugin, d.req.Point) }

// preFilter runs the plugin's PreFilter, unless the request is bare, over all nodes as the framework does.
func (d *direct) preFilter() error {
	plugin, ok := d.plugin.(fwk.PreFilterPlugin)
	if !ok || d.req.Bare {
		return nil
	}
	all, err := d.cluster.nodes("")
	if err != nil {
		return err
	}
	result, status := plugin.PreFilter(d.ctx, d.state, d.pod, all)
	d.answer.PreFilter = preFilterOf(result, status, d.state)
	return nil
}

func (d *direct) score(profileName string) error {
	plugin, ok := d.plugin.(fwk.ScorePlugin)
	if !ok {
		return d.lacks()
	}
	if err := d.preFilter(); err != nil {
		return err
	}
	if pre, ok := d.plugin.(fwk.PreScorePlugin); ok && !d.req.Bare {
		status := pre.PreScore(d.ctx, d.state, d.pod, d.nodes)
		d.answer.PreScore = statusOf(status)
		if !status.IsSuccess() {
			return nil
		}
	}
	weight := int64(1)
	for _, configured := range d.profiles[profileName].ListPlugins().Score.Enabled {
		if configured.Name == d.req.Plugin {
			weight = int64(configured.Weight)
		}
	}
	scores, err := scoreAlone(d.ctx, plugin, weight, d.state, d.pod, d.nodes)
	d.answer.Scores = scores
	return err
}
