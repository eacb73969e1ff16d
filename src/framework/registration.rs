//! Registration of a plugin, with the traits that it implements.

use std::fmt;
use std::sync::Arc;

use super::{
    BindPlugin, EnqueueExtensions, FilterPlugin, NormalizeScore, PermitPlugin, PostBindPlugin, PostFilterPlugin,
    PreBindPlugin, PreEnqueuePlugin, PreFilterPlugin, PreScorePlugin, QueueSortPlugin, ReservePlugin, ScorePlugin,
    SignPlugin,
};
use crate::config::ExtensionPoint;

/// The extension points of one plugin. The compiler checks that the plugin implements the trait of each point that it
/// registers. The plugin does not run at points that are not registered here.
#[derive(Clone)]
#[must_use]
pub struct Registration {
    name: Arc<str>,
    pub(crate) events: Option<Arc<dyn EnqueueExtensions>>,
    pub(crate) sign: Option<Arc<dyn SignPlugin>>,
    pub(crate) pre_enqueue: Option<Arc<dyn PreEnqueuePlugin>>,
    pub(crate) queue_sort: Option<Arc<dyn QueueSortPlugin>>,
    pub(crate) pre_filter: Option<Arc<dyn PreFilterPlugin>>,
    pub(crate) filter: Option<Arc<dyn FilterPlugin>>,
    pub(crate) post_filter: Option<Arc<dyn PostFilterPlugin>>,
    pub(crate) pre_score: Option<Arc<dyn PreScorePlugin>>,
    pub(crate) score: Option<Arc<dyn ScorePlugin>>,
    pub(crate) normalize: Option<Arc<dyn NormalizeScore>>,
    pub(crate) reserve: Option<Arc<dyn ReservePlugin>>,
    pub(crate) permit: Option<Arc<dyn PermitPlugin>>,
    pub(crate) pre_bind: Option<Arc<dyn PreBindPlugin>>,
    pub(crate) bind: Option<Arc<dyn BindPlugin>>,
    pub(crate) post_bind: Option<Arc<dyn PostBindPlugin>>,
}

/// Generates the builder methods of [`Registration`], one per extension point.
macro_rules! points {
    ($($method:ident: $plugin:ident, $what:literal;)*) => {
        $(
            #[doc = concat!("The plugin ", $what, ".")]
            pub fn $method<P: $plugin>(mut self, plugin: &Arc<P>) -> Self {
                self.$method = Some(plugin.clone());
                self
            }
        )*
    };
}

impl Registration {
    /// Creates a registration without extension points.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            events: None,
            sign: None,
            pre_enqueue: None,
            queue_sort: None,
            pre_filter: None,
            filter: None,
            post_filter: None,
            pre_score: None,
            score: None,
            normalize: None,
            reserve: None,
            permit: None,
            pre_bind: None,
            bind: None,
            post_bind: None,
        }
    }

    /// Returns the plugin's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    points! {
        events: EnqueueExtensions, "says which events may help the pods that it rejects";
        sign: SignPlugin, "signs pods";
        pre_enqueue: PreEnqueuePlugin, "keeps pods out of activeQ";
        queue_sort: QueueSortPlugin, "orders activeQ";
        pre_filter: PreFilterPlugin, "looks at the pod before nodes are filtered";
        filter: FilterPlugin, "filters nodes";
        post_filter: PostFilterPlugin, "tries to make room";
        pre_score: PreScorePlugin, "looks at the feasible nodes before they are scored";
        score: ScorePlugin, "scores nodes";
        normalize: NormalizeScore, "normalises its scores";
        reserve: ReservePlugin, "keeps account of what assumed pods hold";
        permit: PermitPlugin, "holds pods back before they are bound";
        pre_bind: PreBindPlugin, "works before a pod is bound";
        bind: BindPlugin, "binds pods";
        post_bind: PostBindPlugin, "hears of bound pods";
    }

    /// Whether the plugin has registered this point.
    pub fn implements(&self, point: ExtensionPoint) -> bool {
        match point {
            ExtensionPoint::PreEnqueue => self.pre_enqueue.is_some(),
            ExtensionPoint::QueueSort => self.queue_sort.is_some(),
            ExtensionPoint::PreFilter => self.pre_filter.is_some(),
            ExtensionPoint::Filter => self.filter.is_some(),
            ExtensionPoint::PostFilter => self.post_filter.is_some(),
            ExtensionPoint::PreScore => self.pre_score.is_some(),
            ExtensionPoint::Score => self.score.is_some(),
            ExtensionPoint::Reserve => self.reserve.is_some(),
            ExtensionPoint::Permit => self.permit.is_some(),
            ExtensionPoint::PreBind => self.pre_bind.is_some(),
            ExtensionPoint::Bind => self.bind.is_some(),
            ExtensionPoint::PostBind => self.post_bind.is_some(),
            ExtensionPoint::PlacementGenerate | ExtensionPoint::PlacementScore => false,
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.name)
    }
}
