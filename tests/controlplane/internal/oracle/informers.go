package oracle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// frozenInformer is a SharedIndexInformer that holds a fixed list of objects. It has synced from the start and delivers the
// list to each handler inside AddEventHandler, so no goroutine and no wait is needed, and the order of delivery is the order
// of the list.
type frozenInformer struct {
	// The methods that start, stop or tune a real informer are not called by the scheduler, and panic if they are.
	cache.SharedIndexInformer
	items   []any
	indexer cache.Indexer
}

func newFrozenInformer(items []any) (*frozenInformer, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, item := range items {
		if err := indexer.Add(item); err != nil {
			return nil, err
		}
	}
	return &frozenInformer{items: items, indexer: indexer}, nil
}

func (f *frozenInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, item := range f.items {
		handler.OnAdd(item, true)
	}
	return synced{}, nil
}

func (f *frozenInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *frozenInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *frozenInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (f *frozenInformer) GetStore() cache.Store                                           { return f.indexer }
func (f *frozenInformer) GetIndexer() cache.Indexer                                       { return f.indexer }
func (f *frozenInformer) AddIndexers(indexers cache.Indexers) error {
	return f.indexer.AddIndexers(indexers)
}
func (f *frozenInformer) HasSynced() bool                     { return true }
func (f *frozenInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (f *frozenInformer) IsStopped() bool                     { return false }

// synced is both a handler registration and a checker of something that is already done.
type synced struct{}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return "frozen informer" }
func (synced) Done() <-chan struct{}               { return closed }

// newFactory makes an informer factory in which every kind of the table is a frozen informer.
func newFactory(client kubernetes.Interface, objs *objects) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	for _, k := range kinds {
		frozen, err := newFrozenInformer(objs.byKind[k.name])
		if err != nil {
			return nil, err
		}
		factory.InformerFor(k.empty().(runtime.Object), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return frozen
		})
	}
	return factory, nil
}

// podOf finds a pod of the case.
func podOf(factory informers.SharedInformerFactory, key string) (*corev1.Pod, bool) {
	obj, found, err := factory.Core().V1().Pods().Informer().GetStore().GetByKey(key)
	if err != nil || !found {
		return nil, false
	}
	return obj.(*corev1.Pod), true
}
