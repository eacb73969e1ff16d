//! Every feature gate of kube-scheduler 1.36: its stages by minor version, its default and lock at each stage, and the gates it
//! depends on.
//!
//! The data comes from `pkg/features/kube_features.go`, `staging/src/k8s.io/apiserver/pkg/features`,
//! `client-go/features`, `component-base/logs/api`, `component-base/metrics/features`, `component-base/zpages/features
//! @v1.36.3`. Most gates have no effect in a scheduler. They are listed because clusters often give the same `--feature-gates`
//! to every component, and because the metric `kubernetes_feature_enabled` lists all gates.

/// The maturity of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The gate does not exist yet at the emulated version.
    PreAlpha,
    /// The gate is off by default.
    Alpha,
    /// The gate is usually on by default.
    Beta,
    /// The gate is stable (generally available).
    Ga,
    /// The gate will be removed.
    Deprecated,
}

impl Stage {
    /// The stage's name in upstream's messages; empty for a stable gate.
    /// Follows `component-base/featuregate/feature_gate.go @v1.36.3`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreAlpha => "PRE-ALPHA",
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}

/// One stage in the history of a gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    /// The first minor version (of 1.x) with this stage; 0 if it has always applied.
    pub(super) since: u8,
    pub(super) stage: Stage,
    pub(super) default: bool,
    pub(super) locked: bool,
}

/// The table's row for one gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Stages of the gate, oldest first.
    pub(super) history: &'static [Spec],
    /// Gates that must be on for this one to be on, sorted.
    pub(super) needs: &'static [Gate],
    /// Whether values other than the default of 1.36 are supported. Also true if the gate has no effect in a scheduler.
    pub(super) supported: bool,
}

macro_rules! value {
    (on) => {
        true
    };
    (off) => {
        false
    };
}

macro_rules! flag {
    () => {
        false
    };
    ($word:ident) => {
        true
    };
}

/// Defines the gates: `Name: [minor Stage default locked?, …] needs [gate, …]? => later?;`. `later` marks a gate for which only
/// the default is supported.
macro_rules! gates {
    ($($name:ident: [$($since:literal $stage:ident $default:ident $($locked:ident)?),+]
        $(needs [$($need:ident),+])? $(=> $later:ident)?;)+) => {
        /// A feature gate of kube-scheduler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Gate {
            $(#[doc = concat!("`", stringify!($name), "`.")] $name,)+
        }

        impl Gate {
            /// All gates, sorted by name.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }

        /// The table's rows, indexed by gate.
        pub(super) const TABLE: &[Row] = &[$(Row {
            name: stringify!($name),
            history: &[$(Spec {
                since: $since,
                stage: Stage::$stage,
                default: value!($default),
                locked: flag!($($locked)?),
            }),+],
            needs: &[$($(Gate::$need),+)?],
            supported: !flag!($($later)?),
        }),+];
    };
}

gates! {
    APIResponseCompression: [8 Alpha off, 16 Beta on];
    APIServerIdentity: [20 Alpha off, 26 Beta on];
    APIServerTracing: [22 Alpha off, 27 Beta on, 34 Ga on locked];
    APIServingWithRoutine: [30 Alpha off];
    AggregatedDiscoveryRemoveBetaType: [0 Ga off, 33 Deprecated on, 35 Deprecated on locked];
    AllAlpha: [0 Alpha off];
    AllBeta: [0 Beta off];
    AllowDNSOnlyNodeCSR: [0 Ga on, 31 Deprecated off];
    AllowInsecureKubeletCertificateSigningRequests: [0 Ga on, 31 Deprecated off];
    AllowOverwriteTerminationGracePeriodSeconds: [0 Ga on, 32 Deprecated off, 35 Deprecated off locked];
    AllowParsingUserUIDFromCertAuth: [33 Beta on];
    AllowServiceExternalIPs: [0 Ga on];
    AllowUnsafeMalformedObjectDeletion: [32 Alpha off];
    AnonymousAuthConfigurableEndpoints: [31 Alpha off, 32 Beta on, 34 Ga on locked];
    AnyVolumeDataSource: [18 Alpha off, 24 Beta on, 33 Ga on locked];
    AtomicFIFO: [36 Beta on];
    AuthorizeNodeWithSelectors: [31 Alpha off, 32 Beta on, 34 Ga on locked] needs [AuthorizeWithSelectors];
    AuthorizePodWebsocketUpgradeCreatePermission: [35 Beta on];
    AuthorizeWithSelectors: [31 Alpha off, 32 Beta on, 34 Ga on locked];
    BtreeWatchCache: [32 Beta on, 33 Ga on locked];
    CBORServingAndStorage: [32 Alpha off] => later;
    CPUManagerPolicyAlphaOptions: [23 Alpha off];
    CPUManagerPolicyBetaOptions: [23 Beta on];
    CPUManagerPolicyOptions: [22 Alpha off, 23 Beta on, 33 Ga on locked];
    CRDObservedGenerationTracking: [35 Beta off, 36 Beta on];
    CRDValidationRatcheting: [28 Alpha off, 30 Beta on, 33 Ga on locked];
    CRIListStreaming: [36 Alpha off];
    CSIServiceAccountTokenSecrets: [35 Beta on, 36 Ga on locked];
    CSIVolumeHealth: [21 Alpha off];
    ChangeContainerStatusOnKubeletRestart: [0 Ga on, 35 Deprecated off];
    ClearingNominatedNodeNameAfterBinding: [34 Alpha off, 35 Beta on];
    ClientsAllowCARotation: [36 Beta on];
    ClientsAllowCBOR: [32 Alpha off] => later;
    ClientsAllowTLSCacheGC: [36 Beta on];
    ClientsPreferCBOR: [32 Alpha off] => later;
    CloudControllerManagerWatchBasedRoutesReconciliation: [35 Alpha off];
    CloudControllerManagerWebhook: [27 Alpha off];
    ClusterTrustBundle: [27 Alpha off, 33 Beta off];
    ClusterTrustBundleProjection: [29 Alpha off, 33 Beta off] needs [ClusterTrustBundle];
    ComponentFlagz: [32 Alpha off, 36 Beta on];
    ComponentStatusz: [32 Alpha off, 36 Beta on];
    ConcurrentWatchObjectDecode: [31 Beta off];
    ConsistentListFromCache: [28 Alpha off, 31 Beta on, 34 Ga on locked];
    ConstrainedImpersonation: [35 Alpha off, 36 Beta on];
    ContainerCheckpoint: [25 Alpha off, 30 Beta on];
    ContainerRestartRules: [34 Alpha off, 35 Beta on];
    ContainerStopSignals: [33 Alpha off];
    ContextualLogging: [24 Alpha off, 30 Beta on];
    CoordinatedLeaderElection: [31 Alpha off, 33 Beta off];
    CrossNamespaceVolumeDataSource: [26 Alpha off];
    CustomCPUCFSQuotaPeriod: [12 Alpha off, 36 Ga on];
    CustomResourceFieldSelectors: [30 Alpha off, 31 Beta on, 32 Ga on locked];
    DRAAdminAccess: [32 Alpha off, 34 Beta on, 36 Ga on locked] needs [DynamicResourceAllocation] => later;
    DRAConsumableCapacity: [34 Alpha off, 36 Beta on] needs [DynamicResourceAllocation] => later;
    DRADeviceBindingConditions: [34 Alpha off, 36 Beta on]
        needs [DRAResourceClaimDeviceStatus, DynamicResourceAllocation] => later;
    DRADeviceTaintRules: [35 Alpha off, 36 Beta off] needs [DRADeviceTaints] => later;
    DRADeviceTaints: [33 Alpha off, 36 Beta on] needs [DynamicResourceAllocation] => later;
    DRAExtendedResource: [34 Alpha off, 36 Beta on] needs [DynamicResourceAllocation] => later;
    DRAListTypeAttributes: [36 Alpha off] needs [DynamicResourceAllocation];
    DRANodeAllocatableResources: [36 Alpha off] needs [DynamicResourceAllocation] => later;
    DRAPartitionableDevices: [33 Alpha off, 36 Beta on] needs [DynamicResourceAllocation] => later;
    DRAPrioritizedList: [33 Alpha off, 34 Beta on, 36 Ga on] needs [DynamicResourceAllocation] => later;
    DRAResourceClaimDeviceStatus: [32 Alpha off, 33 Beta on] => later;
    DRAResourceClaimGranularStatusAuthorization: [36 Beta on]
        needs [DRAResourceClaimDeviceStatus, DynamicResourceAllocation];
    DRAResourcePoolStatus: [36 Alpha off] needs [DynamicResourceAllocation];
    DRASchedulerFilterTimeout: [34 Beta on] needs [DynamicResourceAllocation] => later;
    DRAWorkloadResourceClaims: [36 Alpha off] needs [DynamicResourceAllocation, GenericWorkload] => later;
    DeclarativeValidation: [33 Beta on, 36 Ga on locked];
    DeclarativeValidationBeta: [36 Beta on] needs [DeclarativeValidation];
    DeclarativeValidationTakeover: [33 Beta off, 36 Deprecated off] needs [DeclarativeValidation];
    DeploymentReplicaSetTerminatingReplicas: [33 Alpha off, 35 Beta on];
    DetectCacheInconsistency: [34 Beta on];
    DisableAllocatorDualWrite: [31 Alpha off, 33 Beta off, 34 Ga on, 35 Ga on locked] needs [MultiCIDRServiceAllocator];
    DisableCPUQuotaWithExclusiveCPUs: [33 Beta on, 36 Deprecated on];
    DisableNodeKubeProxyVersion: [29 Alpha off, 31 Deprecated off, 33 Deprecated on, 36 Deprecated on locked];
    DynamicResourceAllocation: [26 Alpha off, 32 Beta off, 34 Ga on, 35 Ga on locked] => later;
    EnvFiles: [34 Alpha off, 35 Beta on];
    EventedPLEG: [26 Alpha off];
    ExecProbeTimeout: [20 Ga on, 35 Ga on locked];
    ExtendWebSocketsToKubelet: [36 Beta on] needs [NodeDeclaredFeatures];
    ExternalServiceAccountTokenSigner: [32 Alpha off, 34 Beta on, 36 Ga on locked];
    GangScheduling: [35 Alpha off] needs [GenericWorkload] => later;
    GenericWorkload: [35 Alpha off] => later;
    GitRepoVolumeDriver: [0 Ga on, 33 Deprecated off, 36 Deprecated off locked];
    GracefulNodeShutdown: [20 Alpha off, 21 Beta on];
    GracefulNodeShutdownBasedOnPodPriority: [23 Alpha off, 24 Beta on] needs [GracefulNodeShutdown];
    HPAConfigurableTolerance: [33 Alpha off, 35 Beta on];
    HPAScaleToZero: [16 Alpha off];
    HostnameOverride: [34 Alpha off, 35 Beta on];
    ImageMaximumGCAge: [29 Alpha off, 30 Beta on, 35 Ga on locked];
    ImageVolume: [31 Alpha off, 33 Beta off, 35 Beta on, 36 Ga on locked];
    ImageVolumeWithDigest: [35 Alpha off] needs [ImageVolume];
    InOrderInformers: [33 Beta on, 36 Ga on locked];
    InOrderInformersBatchProcess: [35 Beta on];
    InPlacePodLevelResourcesVerticalScaling: [35 Alpha off, 36 Beta on]
        needs [InPlacePodVerticalScaling, NodeDeclaredFeatures, PodLevelResources];
    InPlacePodVerticalScaling: [27 Alpha off, 33 Beta on, 35 Ga on locked];
    InPlacePodVerticalScalingExclusiveCPUs: [32 Alpha off] needs [InPlacePodVerticalScaling];
    InPlacePodVerticalScalingExclusiveMemory: [34 Alpha off] needs [InPlacePodVerticalScaling];
    InPlacePodVerticalScalingInitContainers: [36 Beta on] needs [InPlacePodVerticalScaling, NodeDeclaredFeatures];
    InformerResourceVersion: [30 Alpha off, 35 Ga on];
    JobBackoffLimitPerIndex: [28 Alpha off, 29 Beta on, 33 Ga on locked];
    JobManagedBy: [30 Alpha off, 32 Beta on, 35 Ga on locked];
    JobPodReplacementPolicy: [28 Alpha off, 29 Beta on, 34 Ga on locked];
    JobSuccessPolicy: [30 Alpha off, 31 Beta on, 33 Ga on locked];
    KMSv1: [0 Ga on, 28 Deprecated on, 29 Deprecated off];
    KubeletCgroupDriverFromCRI: [28 Alpha off, 31 Beta on, 34 Ga on locked];
    KubeletCrashLoopBackOffMax: [32 Alpha off, 35 Beta on];
    KubeletEnsureSecretPulledImages: [33 Alpha off, 35 Beta on];
    KubeletFineGrainedAuthz: [32 Alpha off, 33 Beta on, 36 Ga on locked];
    KubeletInUserNamespace: [22 Alpha off];
    KubeletPSI: [33 Alpha off, 34 Beta on, 36 Ga on locked];
    KubeletPodResourcesDynamicResources: [27 Alpha off, 34 Beta on, 36 Ga on locked];
    KubeletPodResourcesGet: [27 Alpha off, 34 Beta on, 36 Ga on locked];
    KubeletPodResourcesListUseActivePods: [0 Ga off, 34 Deprecated on];
    KubeletRegistrationGetOnExistsOnly: [0 Ga on, 32 Deprecated off];
    KubeletSeparateDiskGC: [29 Alpha off, 31 Beta on];
    KubeletServiceAccountTokenForCredentialProviders: [33 Alpha off, 34 Beta on];
    KubeletTracing: [25 Alpha off, 27 Beta on, 34 Ga on locked];
    ListFromCacheSnapshot: [33 Alpha off, 34 Beta on];
    LocalStorageCapacityIsolationFSQuotaMonitoring: [15 Alpha off, 31 Beta off];
    LogarithmicScaleDown: [21 Alpha off, 22 Beta on, 31 Ga on locked];
    LoggingAlphaOptions: [24 Alpha off] => later;
    LoggingBetaOptions: [24 Beta on];
    ManifestBasedAdmissionControlConfig: [36 Alpha off];
    MatchLabelKeysInPodAffinity: [29 Alpha off, 31 Beta on, 33 Ga on locked];
    MatchLabelKeysInPodTopologySpread: [25 Alpha off, 27 Beta on];
    MatchLabelKeysInPodTopologySpreadSelectorMerge: [34 Beta on] needs [MatchLabelKeysInPodTopologySpread];
    MaxUnavailableStatefulSet: [24 Alpha off, 35 Beta off];
    MemoryQoS: [22 Alpha off];
    MultiCIDRServiceAllocator: [27 Alpha off, 31 Beta off, 33 Ga on, 34 Ga on locked];
    MutableCSINodeAllocatableCount: [33 Alpha off, 34 Beta off, 35 Beta on, 36 Ga on locked];
    MutablePVNodeAffinity: [35 Alpha off];
    MutablePodResourcesForSuspendedJobs: [35 Alpha off, 36 Beta on];
    MutableSchedulingDirectivesForSuspendedJobs: [35 Alpha off, 36 Beta on];
    MutatingAdmissionPolicy: [32 Alpha off, 34 Beta off, 36 Ga on];
    NFTablesProxyMode: [29 Alpha off, 31 Beta on, 33 Ga on locked];
    NativeHistograms: [36 Alpha off] => later;
    NodeDeclaredFeatures: [35 Alpha off, 36 Beta on];
    NodeInclusionPolicyInPodTopologySpread: [25 Alpha off, 26 Beta on, 33 Ga on locked];
    NodeLogQuery: [27 Alpha off, 30 Beta off, 36 Ga on locked];
    NodeSwap: [22 Alpha off, 28 Beta off, 30 Beta on, 34 Ga on locked];
    NominatedNodeNameForExpectation: [34 Alpha off, 35 Beta on];
    OpenAPIEnums: [23 Alpha off, 24 Beta on];
    OpportunisticBatching: [35 Beta on];
    OrderedNamespaceDeletion: [30 Beta off, 33 Beta on, 34 Ga on locked];
    PLEGOnDemandRelist: [36 Beta on];
    PersistentVolumeClaimUnusedSinceTime: [36 Alpha off];
    PodAndContainerStatsFromCRI: [23 Alpha off];
    PodCertificateRequest: [34 Alpha off, 35 Beta off] needs [AuthorizeNodeWithSelectors];
    PodDeletionCost: [21 Alpha off, 22 Beta on];
    PodLevelResourceManagers: [36 Alpha off] needs [PodLevelResources];
    PodLevelResources: [32 Alpha off, 34 Beta on];
    PodLifecycleSleepAction: [29 Alpha off, 30 Beta on, 34 Ga on locked];
    PodLifecycleSleepActionAllowZero: [32 Alpha off, 33 Beta on, 34 Ga on locked] needs [PodLifecycleSleepAction];
    PodLogsQuerySplitStreams: [32 Alpha off];
    PodObservedGenerationTracking: [33 Alpha off, 34 Beta on, 35 Ga on locked];
    PodReadyToStartContainersCondition: [28 Alpha off, 29 Beta on];
    PodSchedulingReadiness: [26 Alpha off, 27 Beta on, 30 Ga on locked];
    PodTopologyLabelsAdmission: [33 Alpha off, 35 Beta on];
    PodsAPI: [36 Alpha off];
    PortForwardWebsockets: [30 Alpha off, 31 Beta on];
    PreferSameTrafficDistribution: [33 Alpha off, 34 Beta on, 35 Ga on locked];
    PreventStaticPodAPIReferences: [34 Beta on];
    ProcMountType: [12 Alpha off, 31 Beta off, 33 Beta on, 36 Ga on locked] needs [UserNamespacesSupport];
    QOSReserved: [11 Alpha off];
    RecoverVolumeExpansionFailure: [23 Alpha off, 32 Beta on, 34 Ga on locked];
    RecursiveReadOnlyMounts: [30 Alpha off, 31 Beta on, 33 Ga on locked];
    ReduceDefaultCrashLoopBackOffDecay: [33 Alpha off];
    RelaxedDNSSearchValidation: [32 Alpha off, 33 Beta on, 34 Ga on locked];
    RelaxedEnvironmentVariableValidation: [30 Alpha off, 32 Beta on, 34 Ga on locked];
    RelaxedServiceNameValidation: [34 Alpha off, 36 Beta on];
    ReloadKubeletClientCAFile: [36 Beta on];
    ReloadKubeletServerCertificateFile: [31 Beta on];
    RemoteRequestHeaderUID: [32 Alpha off, 33 Beta on];
    ResilientWatchCacheInitialization: [31 Beta on, 34 Ga on locked];
    ResourceHealthStatus: [31 Alpha off, 36 Beta on] needs [DynamicResourceAllocation];
    ResourceHealthStatusMessage: [36 Beta on] needs [ResourceHealthStatus];
    RestartAllContainersOnContainerExits: [35 Alpha off, 36 Beta on]
        needs [ContainerRestartRules, NodeDeclaredFeatures];
    RetryGenerateName: [30 Alpha off, 31 Beta on, 32 Ga on locked];
    RotateKubeletServerCertificate: [7 Alpha off, 12 Beta on];
    RuntimeClassInImageCriApi: [29 Alpha off];
    SELinuxChangePolicy: [32 Alpha off, 33 Beta on, 36 Ga on locked];
    SELinuxMount: [30 Alpha off, 33 Beta off];
    SELinuxMountReadWriteOncePod: [25 Alpha off, 27 Beta off, 28 Beta on, 36 Ga on locked];
    SchedulerAsyncAPICalls: [34 Beta off] => later;
    SchedulerAsyncPreemption: [32 Alpha off, 33 Beta on];
    SchedulerPopFromBackoffQ: [33 Beta on];
    SchedulerQueueingHints: [28 Beta off, 32 Beta on, 34 Ga on locked];
    SeparateCacheWatchRPC: [28 Beta on, 33 Deprecated off, 36 Deprecated off locked];
    SeparateTaintEvictionController: [29 Beta on, 34 Ga on locked];
    ServiceAccountNodeAudienceRestriction: [32 Beta off, 33 Beta on];
    ServiceAccountTokenJTI: [29 Alpha off, 30 Beta on, 32 Ga on locked];
    ServiceAccountTokenNodeBinding: [29 Alpha off, 31 Beta on, 33 Ga on locked]
        needs [ServiceAccountTokenNodeBindingValidation];
    ServiceAccountTokenNodeBindingValidation: [29 Alpha off, 30 Beta on, 32 Ga on locked];
    ServiceAccountTokenPodNodeInfo: [29 Alpha off, 30 Beta on, 32 Ga on locked];
    ServiceCIDRStatusFieldWiping: [0 Ga off, 36 Deprecated on];
    ShardedListAndWatch: [36 Alpha off] => later;
    SidecarContainers: [28 Alpha off, 29 Beta on, 33 Ga on locked];
    SizeBasedListCostEstimate: [34 Beta on];
    StaleControllerConsistencyDaemonSet: [36 Beta on] needs [AtomicFIFO];
    StaleControllerConsistencyJob: [36 Beta on] needs [AtomicFIFO];
    StaleControllerConsistencyReplicaSet: [36 Beta on] needs [AtomicFIFO];
    StaleControllerConsistencyStatefulSet: [36 Beta on] needs [AtomicFIFO];
    StatefulSetSemanticRevisionComparison: [0 Beta on];
    StorageCapacityScoring: [33 Alpha off] => later;
    StorageNamespaceIndex: [30 Beta on, 33 Deprecated on];
    StorageVersionAPI: [20 Alpha off] needs [APIServerIdentity];
    StorageVersionHash: [14 Alpha off, 15 Beta on];
    StorageVersionMigrator: [30 Alpha off, 35 Beta off];
    StreamingCollectionEncodingToJSON: [33 Beta on, 34 Ga on locked];
    StreamingCollectionEncodingToProtobuf: [33 Beta on, 34 Ga on locked];
    StrictIPCIDRValidation: [33 Alpha off, 36 Beta on];
    StructuredAuthenticationConfiguration: [29 Alpha off, 30 Beta on, 34 Ga on locked];
    StructuredAuthenticationConfigurationEgressSelector: [34 Beta on] needs [StructuredAuthenticationConfiguration];
    StructuredAuthenticationConfigurationJWKSMetrics: [35 Beta on] needs [StructuredAuthenticationConfiguration];
    SupplementalGroupsPolicy: [31 Alpha off, 33 Beta on, 35 Ga on locked];
    SystemdWatchdog: [32 Beta on, 35 Ga on locked];
    TaintTolerationComparisonOperators: [35 Alpha off];
    TokenRequestServiceAccountUIDValidation: [34 Beta on];
    TopologyAwareWorkloadScheduling: [36 Alpha off] needs [GenericWorkload] => later;
    TopologyManagerPolicyAlphaOptions: [26 Alpha off];
    TopologyManagerPolicyBetaOptions: [26 Beta off, 28 Beta on];
    TopologyManagerPolicyOptions: [26 Alpha off, 28 Beta on, 32 Ga on locked];
    TranslateStreamCloseWebsocketRequests: [29 Alpha off, 30 Beta on];
    UnauthenticatedHTTP2DOSMitigation: [25 Beta off, 29 Beta on];
    UnknownVersionInteroperabilityProxy: [28 Alpha off, 36 Beta on] needs [APIServerIdentity];
    UnlockWhileProcessingFIFO: [36 Beta on];
    UserNamespacesHostNetworkSupport: [35 Alpha off] needs [NodeDeclaredFeatures, UserNamespacesSupport];
    UserNamespacesSupport: [25 Alpha off, 30 Beta off, 33 Beta on, 36 Ga on locked];
    VolumeAttributesClass: [29 Alpha off, 31 Beta off, 34 Ga on, 36 Ga on locked];
    VolumeLimitScaling: [35 Alpha off] => later;
    WatchCacheInitializationPostStartHook: [31 Beta off, 36 Beta on];
    WatchList: [27 Alpha off, 32 Beta on, 33 Beta off, 34 Beta on];
    WatchListClient: [30 Beta off, 35 Beta on];
    WinDSR: [14 Alpha off, 33 Beta on, 34 Ga on locked];
    WinOverlay: [14 Alpha off, 20 Beta on, 34 Ga on locked];
    WindowsCPUAndMemoryAffinity: [32 Alpha off];
    WindowsGracefulNodeShutdown: [32 Alpha off, 34 Beta on] needs [GracefulNodeShutdown];
    WindowsHostNetwork: [26 Alpha off, 33 Deprecated off];
    WorkloadAwarePreemption: [36 Alpha off] needs [GangScheduling] => later;
    WorkloadWithJob: [36 Alpha off] needs [GenericWorkload];
}
