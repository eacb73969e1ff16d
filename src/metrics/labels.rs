//! Labels with a fixed set of values, each an enum with upstream's texts.

/// Declares an enum of label values: its variants, their texts, and a dense index for arrays of handles.
macro_rules! label_values {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All values in order of [`Self::index`].
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the label's text.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Returns the value's position in [`Self::ALL`].
            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

label_values! {
    /// Values of the label `extension_point`.
    /// Follows `pkg/scheduler/metrics/metrics.go#ExtensionPoints @v1.36.3` and the constants beside it.
    Point {
        /// The check before a pod enters activeQ.
        PreEnqueue = "PreEnqueue",
        /// Preparation before filtering, once a cycle.
        PreFilter = "PreFilter",
        /// Addition of a pod to `PreFilter`'s state.
        PreFilterExtensionAddPod = "PreFilterExtensionAddPod",
        /// Removal of a pod from `PreFilter`'s state.
        PreFilterExtensionRemovePod = "PreFilterExtensionRemovePod",
        /// Filtering of the nodes. For one plugin, a call with one node. For the whole extension point, the loop over the nodes.
        Filter = "Filter",
        /// Preemption and other work after no node passed the filters.
        PostFilter = "PostFilter",
        /// Preparation before scoring, once a cycle.
        PreScore = "PreScore",
        /// Scoring of the nodes. For one plugin, a call with one node. For the whole extension point, scores, normalization and
        /// weights.
        Score = "Score",
        /// Normalization of a plugin's scores.
        ScoreExtensionNormalize = "ScoreExtensionNormalize",
        /// Work before the binding.
        PreBind = "PreBind",
        /// Check whether `PreBind` has work to do.
        PreBindPreFlight = "PreBindPreFlight",
        /// Binding of the pod to the node.
        Bind = "Bind",
        /// Work after the binding.
        PostBind = "PostBind",
        /// Reservation of resources in memory.
        Reserve = "Reserve",
        /// Release of a reservation.
        Unreserve = "Unreserve",
        /// Decision to allow, reject or delay the pod, without the wait itself.
        Permit = "Permit",
        /// Computation of a pod's signature.
        Sign = "Sign",
        /// Generation of candidate placements for a pod group.
        PlacementGenerate = "PlacementGenerate",
        /// Scoring of a pod group's placements.
        PlacementScore = "PlacementScore",
        /// Normalization of the placements' scores.
        PlacementScoreExtensionNormalize = "PlacementScoreExtensionNormalize",
    }
}

label_values! {
    /// Values of the labels `status` and `result` that are framework status codes.
    /// Follows `kube-scheduler/framework/interface.go#Code @v1.36.3`.
    StatusCode {
        /// The call was successful.
        Success = "Success",
        /// The call failed with an error.
        Error = "Error",
        /// The pod was rejected, and preemption may help.
        Unschedulable = "Unschedulable",
        /// The pod was rejected, and preemption does not help.
        UnschedulableAndUnresolvable = "UnschedulableAndUnresolvable",
        /// The pod waits on Permit.
        Wait = "Wait",
        /// The plugin has nothing to do.
        Skip = "Skip",
        /// The pod was rejected until an operation outside the scheduler finishes.
        Pending = "Pending",
    }
}

label_values! {
    /// Values of the label `operation`: operations that may run several times concurrently.
    /// Follows `pkg/scheduler/metrics/metrics.go#Binding @v1.36.3`,
    /// `#PrioritizingExtender` and, for extension points, their names.
    Operation {
        /// A binding cycle of a pod.
        Binding = "binding",
        /// A request for scores to an extender.
        PrioritizingExtender = "prioritizing_extender",
        /// The search for nodes.
        Filter = "Filter",
        /// The scoring of nodes.
        Score = "Score",
        /// `PreBind` plugins that run concurrently.
        PreBind = "PreBind",
        /// The search for victims, and their deletion.
        DefaultPreemption = "DefaultPreemption",
    }
}

label_values! {
    /// Values of the label `result` of a scheduling attempt. Follows `pkg/scheduler/metrics/profile_metrics.go @v1.36.3`.
    AttemptResult {
        /// The pod was bound.
        Scheduled = "scheduled",
        /// The pod was rejected.
        Unschedulable = "unschedulable",
        /// Preemption was started for the pod group. Used only for pod groups.
        WaitingOnPreemption = "waiting_on_preemption",
        /// The attempt failed with an error.
        Error = "error",
    }
}

label_values! {
    /// Values of the label `queue` of pending pods.
    PendingQueue {
        /// Pods waiting in `activeQ`.
        Active = "active",
        /// Pods in the backoff queues.
        Backoff = "backoff",
        /// Pods in `unschedulablePods`, except gated pods.
        Unschedulable = "unschedulable",
        /// Pods that are gated by a `PreEnqueue` plugin.
        Gated = "gated",
    }
}

label_values! {
    /// Values of the label `queue` of incoming pods.
    IncomingQueue {
        /// The pods enter `activeQ`.
        Active = "active",
        /// The pods enter a backoff queue.
        Backoff = "backoff",
        /// The pods enter `unschedulablePods`.
        Unschedulable = "unschedulable",
    }
}

label_values! {
    /// Values of the label `type` of the cache size.
    CacheKind {
        /// Nodes in the cache.
        Nodes = "nodes",
        /// Pods on nodes, including assumed pods.
        Pods = "pods",
        /// Pods assumed and not yet confirmed.
        AssumedPods = "assumed_pods",
    }
}

label_values! {
    /// Values of the label `hint`: the result of a queueing hint.
    HintResult {
        /// The event may make the pod schedulable.
        Queue = "Queue",
        /// The event does not make the pod schedulable.
        QueueSkip = "QueueSkip",
        /// The hint returned an error.
        Error = "Error",
    }
}

label_values! {
    /// Values of the label `result` of looking for a node hint.
    /// Follows `pkg/scheduler/metrics/metrics.go#BatchAttemptNoHint @v1.36.3` and its neighbours.
    BatchAttempt {
        /// There was no hint.
        NoHint = "no_hint",
        /// The hinted node was chosen.
        HintUsed = "hint_used",
        /// Another node was chosen.
        HintNotUsed = "hint_not_used",
    }
}

label_values! {
    /// Values of the label `reason`: the reason for dropping the batching state.
    /// Follows `pkg/scheduler/metrics/metrics.go#BatchFlushPodFailed @v1.36.3` and its neighbours.
    BatchFlush {
        /// The previous pod failed. Upstream never counts this.
        PodFailed = "pod_failed",
        /// Another pod was scheduled in between.
        PodSkipped = "pod_skipped",
        /// The node of the previous pod was removed.
        NodeMissing = "node_missing",
        /// The node of the previous pod still has room for another one.
        NodeNotFull = "node_not_full",
        /// No other node was left.
        EmptyList = "empty_list",
        /// The state is too old.
        Expired = "expired",
        /// The pod's signature differs.
        PodIncompatible = "pod_incompatible",
        /// The pod cannot be signed.
        PodNotBatchable = "pod_not_batchable",
    }
}

label_values! {
    /// Values of the labels `result` and `status` with two outcomes.
    Outcome {
        /// The operation was successful.
        Success = "success",
        /// The operation returned an error.
        Error = "error",
    }
}

label_values! {
    /// Values of the label `status` of a wait for a device's binding conditions.
    /// Follows `pkg/scheduler/metrics/metrics.go#BindingConditionsStatusSuccess @v1.36.3` and its neighbours.
    BindingConditions {
        /// All binding conditions became true.
        Success = "success",
        /// A binding failure condition became true.
        Failure = "failure",
        /// The wait timed out.
        Timeout = "timeout",
        /// The wait failed with an error.
        Error = "error",
    }
}

label_values! {
    /// Values of the label `call_type`: writes of the asynchronous dispatcher.
    ApiCallType {
        /// Patch of a pod's status.
        PodStatusPatch = "pod_status_patch",
        /// Binding of a pod.
        PodBinding = "pod_binding",
    }
}

label_values! {
    /// Values of the label `operation`: the operation of volume scheduling that failed.
    VolumeStage {
        /// Search for volumes that fit a node.
        Predicate = "predicate",
        /// Assumption of the volumes' bindings in memory.
        Assume = "assume",
        /// Binding of the volumes.
        Bind = "bind",
    }
}
