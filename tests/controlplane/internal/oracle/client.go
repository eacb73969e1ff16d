package oracle

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// forgetful is a client that answers every write with success and keeps nothing, shared by all cases because building one is
// slow. The scheduler reads through informers; a plugin that asks the API directly finds nothing.
var forgetful = sync.OnceValue(func() *fake.Clientset {
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action := action.(type) {
		case clienttesting.CreateAction: // also an update: it carries the object just the same
			return true, accepted(action.GetObject()), nil
		case clienttesting.PatchAction:
			return true, patched(action), nil
		case clienttesting.DeleteAction:
			return true, nil, nil
		}
		return false, nil, nil
	})
	return client
})

// patched makes an answer of the type that the caller of a patch expects.
func patched(action clienttesting.PatchAction) runtime.Object {
	for _, k := range kinds {
		if strings.ToLower(k.name)+"s" == action.GetResource().Resource {
			return k.empty()
		}
	}
	return &corev1.Pod{}
}

// silent is an event recorder that records nothing.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...interface{}) {
}
func (s silent) WithLogger(klog.Logger) events.EventRecorderLogger { return s }

func silentRecorder(string) events.EventRecorderLogger { return silent{} }
