package oracle

import (
	"context"
	"fmt"
	"os/signal"
	"reflect"
	"syscall"
	"unsafe"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// cluster is one case made into a scheduler that has seen all of its objects.
type cluster struct {
	ctx      context.Context
	cancel   context.CancelFunc
	objs     *objects
	factory  informers.SharedInformerFactory
	sched    *scheduler.Scheduler
	snapshot *internalcache.Snapshot
	// first is the name of the first profile, whose queue sort and registrations stand for all.
	first string
	// profiles are built a second time from the same registry, because the scheduler's own do not give out their plugins.
	profiles profile.Map
	// instances are the plugins of those profiles, by profile and name.
	instances map[string]map[string]fwk.Plugin
	// preemptions watch DefaultPreemption, by profile.
	preemptions map[string]*preemptionWatch
	startIndex  int
}

// newCluster builds the scheduler. Constructing it adds event handlers to the frozen informers, and these fill cache, queue,
// nominator and claim caches before it returns.
func newCluster(objs *objects, cfg *config.KubeSchedulerConfiguration, parallelism int32, startIndex int) (*cluster, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	c := &cluster{
		ctx: ctx, cancel: cancel, objs: objs, first: cfg.Profiles[0].SchedulerName, startIndex: startIndex,
		instances: map[string]map[string]fwk.Plugin{}, preemptions: map[string]*preemptionWatch{},
	}
	if err := c.build(cfg, max(1, parallelism)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) build(cfg *config.KubeSchedulerConfiguration, parallelism int32) error {
	client := forgetful()
	factory, err := newFactory(client, c.objs)
	if err != nil {
		return err
	}
	c.factory = factory
	c.sched, err = scheduler.New(c.ctx, client, factory, nil, silentRecorder,
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(parallelism),
	)
	if err != nil {
		return err
	}
	handle := c.sched.Profiles[c.first]
	snapshot, ok := handle.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return fmt.Errorf("the snapshot is a %T", handle.SnapshotSharedLister())
	}
	c.snapshot = snapshot
	c.profiles, err = profile.NewMap(c.ctx, cfg.Profiles, c.registry(), silentRecorder,
		frameworkruntime.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(handle.SharedDRAManager()),
		frameworkruntime.WithSharedCSIManager(handle.SharedCSIManager()),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodNominator(c.sched.SchedulingQueue),
		frameworkruntime.WithPodActivator(c.sched.SchedulingQueue),
		frameworkruntime.WithParallelism(int(parallelism)),
		frameworkruntime.WithExtenders(c.sched.Extenders),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithPodGroupManager(handle.PodGroupManager()),
	)
	if err != nil {
		return fmt.Errorf("initializing profiles: %w", err)
	}
	return c.sched.Cache.UpdateSnapshot(klog.FromContext(c.ctx), snapshot)
}

// registry is upstream's, with factories that keep what they make.
func (c *cluster) registry() frameworkruntime.Registry {
	registry := frameworkruntime.Registry{}
	for name, factory := range plugins.NewInTreeRegistry() {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			if err != nil {
				return nil, err
			}
			profileName := handle.ProfileName()
			if c.instances[profileName] == nil {
				c.instances[profileName] = map[string]fwk.Plugin{}
			}
			c.instances[profileName][name] = plugin
			if preemption, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				c.preemptions[profileName] = watchPreemption(preemption)
			}
			return plugin, nil
		}
	}
	return registry
}

// rewind lets the next search for feasible nodes start where the case says. The scheduler keeps that place in an unexported
// field and moves it with every cycle.
func (c *cluster) rewind() {
	field := reflect.ValueOf(c.sched).Elem().FieldByName("nextStartNodeIndex")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().SetInt(int64(c.startIndex))
}

// close ends every goroutine of the case and drops what it left in process-wide places: the log of the shared client and the
// cache debugger's signal handler.
func (c *cluster) close() {
	c.cancel()
	forgetful().ClearActions()
	signal.Reset(syscall.SIGUSR2)
}
