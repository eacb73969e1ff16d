package oracle

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
)

// reserve runs Reserve and PreBind on the chosen host, notes what they would have written to the API, and undoes it with
// Unreserve. PreBind gets a context that has already ended: it writes, and does not wait for other components to react.
func (e *evaluation) reserve(state fwk.CycleState, host string) {
	forgetful().ClearActions()
	assumed := e.pod.DeepCopy()
	assumed.Spec.NodeName = host
	status := e.fw.RunReservePluginsReserve(e.ctx, state, assumed, host)
	answer := &ReserveAnswer{Status: *statusOf(status), PreBind: []Status{}, Writes: []Write{}}
	e.answer.Reserve = answer
	if status.IsSuccess() {
		ended, end := context.WithCancel(e.ctx)
		end()
		if status := e.fw.RunPreBindPreFlights(e.ctx, state, assumed, host); !status.IsSkip() && !status.IsSuccess() {
			answer.PreBind = append(answer.PreBind, *statusOf(status))
		}
		for _, configured := range e.fw.ListPlugins().PreBind.Enabled {
			if state.GetSkipPreBindPlugins().Has(configured.Name) {
				continue
			}
			plugin := e.instances[e.fw.ProfileName()][configured.Name].(fwk.PreBindPlugin)
			if status := plugin.PreBind(ended, state, assumed, host); !status.IsSuccess() && !errors.Is(status.AsError(), context.Canceled) {
				answer.PreBind = append(answer.PreBind, *statusOf(status.Clone().WithPlugin(configured.Name)))
			}
		}
		answer.Writes = writes(forgetful().Actions())
	}
	e.fw.RunReservePluginsUnreserve(e.ctx, state, assumed, host)
	forgetful().ClearActions()
}

// writes describes what reached the client.
func writes(actions []clienttesting.Action) []Write {
	all := []Write{}
	for _, action := range actions {
		write := Write{
			Verb: action.GetVerb(), Resource: action.GetResource().Resource, Subresource: action.GetSubresource(),
			Namespace: action.GetNamespace(),
		}
		switch action := action.(type) {
		case clienttesting.CreateAction: // also an update
			write.Object = action.GetObject()
			if named, ok := write.Object.(object); ok {
				write.Name = named.GetName()
			}
		case clienttesting.PatchAction:
			write.Name, write.Patch = action.GetName(), json.RawMessage(action.GetPatch())
		case clienttesting.DeleteAction:
			write.Name = action.GetName()
		default:
			continue // a read
		}
		all = append(all, write)
	}
	return all
}

// accepted is what the forgetful client answers to a write of an object: the object with the lowest resource version, so that
// upstream's assume caches take it for old and do not keep it beyond the cycle.
func accepted(obj runtime.Object) runtime.Object {
	obj = obj.DeepCopyObject()
	if versioned, ok := obj.(object); ok {
		versioned.SetResourceVersion("0")
	}
	return obj
}
