//! The label values that are closed sets, each an enum with upstream's texts.

/// Declares an enum of label values: its variants, the text of each, and a dense index for arrays of handles.
macro_rules! label_values {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// Every value, in order of [`Self::index`].
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The text that the series carries.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// A dense index: the value's place in [`Self::ALL`].
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
    /// `extension_point`. Follows `pkg/scheduler/metrics/metrics.go#ExtensionPoints @v1.36.3` and the constants beside it.
    Point {
        /// Before a pod enters activeQ.
        PreEnqueue = "PreEnqueue",
        /// Once a cycle, before nodes are looked at.
        PreFilter = "PreFilter",
        /// A pod added to `PreFilter`'s state.
        PreFilterExtensionAddPod = "PreFilterExtensionAddPod",
        /// A pod removed from `PreFilter`'s state.
        PreFilterExtensionRemovePod = "PreFilterExtensionRemovePod",
        /// Each node's verdict; as a whole point, the loop over nodes.
        Filter = "Filter",
        /// After no node passed.
        PostFilter = "PostFilter",
        /// Once a cycle, before scoring.
        PreScore = "PreScore",
        /// Each node's score; as a whole point with normalising and weights.
        Score = "Score",
        /// Normalising a plugin's scores.
        ScoreExtensionNormalize = "ScoreExtensionNormalize",
        /// Work before binding.
        PreBind = "PreBind",
        /// Whether `PreBind` will have work.
        PreBindPreFlight = "PreBindPreFlight",
        /// The binding.
        Bind = "Bind",
        /// After a binding.
        PostBind = "PostBind",
        /// Reserving in memory.
        Reserve = "Reserve",
        /// Taking a reservation back.
        Unreserve = "Unreserve",
        /// Allowing, rejecting or making wait; without the waiting itself.
        Permit = "Permit",
        /// A pod's signature.
        Sign = "Sign",
        /// Candidate placements of a pod group.
        PlacementGenerate = "PlacementGenerate",
        /// Scores of a pod group's placements.
        PlacementScore = "PlacementScore",
        /// Normalising those.
        PlacementScoreExtensionNormalize = "PlacementScoreExtensionNormalize",
    }
}

label_values! {
    /// `status`, and `result` where that is a framework code. Follows `kube-scheduler/framework/interface.go#Code @v1.36.3`.
    StatusCode {
        /// It went well.
        Success = "Success",
        /// Something broke.
        Error = "Error",
        /// Rejected; preemption may help.
        Unschedulable = "Unschedulable",
        /// Rejected; preemption does not help.
        UnschedulableAndUnresolvable = "UnschedulableAndUnresolvable",
        /// Permit makes the pod wait.
        Wait = "Wait",
        /// Nothing to do.
        Skip = "Skip",
        /// Rejected until something outside finishes.
        Pending = "Pending",
    }
}

label_values! {
    /// `operation` that may run several times at once. Follows `pkg/scheduler/metrics/metrics.go#Binding @v1.36.3`,
    /// `#PrioritizingExtender` and, for points, the names of their extension points.
    Operation {
        /// A binding cycle.
        Binding = "binding",
        /// An extender's call for scores.
        PrioritizingExtender = "prioritizing_extender",
        /// The search for nodes.
        Filter = "Filter",
        /// The scoring of nodes.
        Score = "Score",
        /// `PreBind` plugins that run together.
        PreBind = "PreBind",
        /// The search for victims, and sending them away.
        DefaultPreemption = "DefaultPreemption",
    }
}

label_values! {
    /// `result` of a scheduling attempt. Follows `pkg/scheduler/metrics/profile_metrics.go @v1.36.3`.
    AttemptResult {
        /// The pod was bound.
        Scheduled = "scheduled",
        /// The pod was rejected.
        Unschedulable = "unschedulable",
        /// Pod groups only: preemption was started for it.
        WaitingOnPreemption = "waiting_on_preemption",
        /// Anything else.
        Error = "error",
    }
}

label_values! {
    /// `queue` of the pending pods.
    PendingQueue {
        /// `activeQ`.
        Active = "active",
        /// Both backoff queues.
        Backoff = "backoff",
        /// `unschedulablePods`, without the gated.
        Unschedulable = "unschedulable",
        /// Pods that a `PreEnqueue` plugin holds.
        Gated = "gated",
    }
}

label_values! {
    /// `queue` of the incoming pods.
    IncomingQueue {
        /// `activeQ`.
        Active = "active",
        /// Either backoff queue.
        Backoff = "backoff",
        /// `unschedulablePods`.
        Unschedulable = "unschedulable",
    }
}

label_values! {
    /// `type` of what the cache holds.
    CacheKind {
        /// Nodes.
        Nodes = "nodes",
        /// Pods on nodes, the assumed ones among them.
        Pods = "pods",
        /// Pods assumed and not yet confirmed.
        AssumedPods = "assumed_pods",
    }
}

label_values! {
    /// `hint`: what a queueing hint said.
    HintResult {
        /// The event may help.
        Queue = "Queue",
        /// It does not.
        QueueSkip = "QueueSkip",
        /// The hint failed.
        Error = "Error",
    }
}

label_values! {
    /// `result` of asking for a node hint. Follows `pkg/scheduler/metrics/metrics.go#BatchAttemptNoHint @v1.36.3` and its neighbours.
    BatchAttempt {
        /// There was none.
        NoHint = "no_hint",
        /// The hinted node was chosen.
        HintUsed = "hint_used",
        /// Another node was chosen.
        HintNotUsed = "hint_not_used",
    }
}

label_values! {
    /// `reason` for which batching state was given up. Follows `pkg/scheduler/metrics/metrics.go#BatchFlushPodFailed @v1.36.3` and its neighbours.
    BatchFlush {
        /// The pod before failed; never counted by upstream.
        PodFailed = "pod_failed",
        /// Another pod was scheduled in between.
        PodSkipped = "pod_skipped",
        /// The node chosen before is gone.
        NodeMissing = "node_missing",
        /// The node chosen before has room for one more.
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
    /// `result` or `status` of work that either went well or did not.
    Outcome {
        /// It went well.
        Success = "success",
        /// It did not.
        Error = "error",
    }
}

label_values! {
    /// `status` of a wait for a device's binding conditions. Follows `pkg/scheduler/metrics/metrics.go#BindingConditionsStatusSuccess @v1.36.3` and its neighbours.
    BindingConditions {
        /// All conditions came true.
        Success = "success",
        /// A failure condition came true.
        Failure = "failure",
        /// They took too long.
        Timeout = "timeout",
        /// The wait itself failed.
        Error = "error",
    }
}

label_values! {
    /// `call_type` of a write by the asynchronous dispatcher.
    ApiCallType {
        /// A patch of a pod's status.
        PodStatusPatch = "pod_status_patch",
        /// A binding.
        PodBinding = "pod_binding",
    }
}

label_values! {
    /// `operation` of volume scheduling that failed.
    VolumeStage {
        /// Finding volumes for a node.
        Predicate = "predicate",
        /// Assuming them.
        Assume = "assume",
        /// Binding them.
        Bind = "bind",
    }
}
