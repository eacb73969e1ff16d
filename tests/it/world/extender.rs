//! Extenders that answer what a test wants, and note what they were asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use kube_scheduler::framework::{BoxFuture, NodeRef, PluginError};
use kube_scheduler::model::{PodInfo, Snapshot};
use kube_scheduler::scheduler::{Extender, ExtenderFilter, Kept, Victims};

use super::probe::{Answer, Log};

type Filter = Box<dyn Fn(&[NodeRef<'_>]) -> Answer<ExtenderFilter> + Send + Sync>;

type Preempt = Box<dyn Fn(BTreeMap<String, Victims>) -> Answer<BTreeMap<String, Victims>> + Send + Sync>;

/// Names with scores, and the weight.
type Scores = (Vec<(String, i64)>, i64);

/// An extender that does what it has an answer for.
#[must_use]
pub(crate) struct FakeExtender {
    name: &'static str,
    ignorable: bool,
    /// The only pod that it cares for; all if none.
    only: Option<&'static str>,
    filter: Option<Filter>,
    prioritize: Option<Answer<Scores>>,
    bind: Option<Answer<()>>,
    preempt: Option<Preempt>,
    log: Log,
}

/// An extender that does nothing.
pub(crate) fn extender(name: &'static str) -> FakeExtender {
    let log = Log::default();
    FakeExtender { name, ignorable: false, only: None, filter: None, prioritize: None, bind: None, preempt: None, log }
}

impl FakeExtender {
    /// Scheduling goes on without it when it fails.
    pub(crate) fn ignorable(mut self) -> Self {
        self.ignorable = true;
        self
    }

    /// It is interested in this pod only.
    pub(crate) fn only(mut self, pod: &'static str) -> Self {
        self.only = Some(pod);
        self
    }

    pub(crate) fn filter(
        mut self,
        answer: impl Fn(&[NodeRef<'_>]) -> Answer<ExtenderFilter> + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Box::new(answer));
        self
    }

    /// It keeps these nodes, and gives a reason for none of the others.
    pub(crate) fn keeps(self, names: &'static [&'static str]) -> Self {
        self.filter(|nodes| {
            let kept = nodes.iter().enumerate().filter(|(_, node)| names.contains(&node.name()));
            let kept = Kept::Positions(kept.map(|(at, _)| at).collect());
            Ok(ExtenderFilter { kept, ..ExtenderFilter::default() })
        })
    }

    /// It scores nodes.
    pub(crate) fn scores(mut self, scores: &[(&str, i64)], weight: i64) -> Self {
        let scores = scores.iter().map(|(node, score)| ((*node).to_owned(), *score)).collect();
        self.prioritize = Some(Ok((scores, weight)));
        self
    }

    /// It fails to score nodes.
    pub(crate) fn fails_to_score(mut self, error: &str) -> Self {
        self.prioritize = Some(Err(PluginError::new(error)));
        self
    }

    /// It binds pods: says that it did, but nobody else gets to know.
    pub(crate) fn binds(mut self, answer: Answer<()>) -> Self {
        self.bind = Some(answer);
        self
    }

    /// It has a say in preemption.
    pub(crate) fn preempts(
        mut self,
        answer: impl Fn(BTreeMap<String, Victims>) -> Answer<BTreeMap<String, Victims>> + Send + Sync + 'static,
    ) -> Self {
        self.preempt = Some(Box::new(answer));
        self
    }

    pub(super) fn into_dyn(mut self, log: &Log) -> Arc<dyn Extender> {
        self.log = log.clone();
        Arc::new(self)
    }

    fn note(&self, what: &str, pod: &PodInfo, nodes: &[NodeRef<'_>]) {
        let names: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
        self.log.push(format!("{what} {} {} {}", self.name, pod.name(), names.join(",")));
    }
}

impl Extender for FakeExtender {
    fn name(&self) -> &str {
        self.name
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        self.only.is_none_or(|only| only == pod.name())
    }

    fn is_ignorable(&self) -> bool {
        self.ignorable
    }

    fn is_filter(&self) -> bool {
        self.filter.is_some()
    }

    fn is_prioritizer(&self) -> bool {
        self.prioritize.is_some()
    }

    fn is_binder(&self) -> bool {
        self.bind.is_some()
    }

    fn supports_preemption(&self) -> bool {
        self.preempt.is_some()
    }

    fn process_preemption(
        &self,
        pod: &PodInfo,
        victims: &BTreeMap<String, Victims>,
        _: &Snapshot,
    ) -> Answer<BTreeMap<String, Victims>> {
        let names: Vec<&str> = victims.keys().map(String::as_str).collect();
        self.log.push(format!("preempt {} {} {}", self.name, pod.name(), names.join(",")));
        self.preempt.as_ref().expect("only extenders with a say are asked")(victims.clone())
    }

    fn filter(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Answer<ExtenderFilter> {
        let Some(answer) = &self.filter else {
            let kept = Kept::Positions((0..nodes.len()).collect());
            return Ok(ExtenderFilter { kept, ..ExtenderFilter::default() });
        };
        self.note("filter", pod, nodes);
        answer(nodes)
    }

    fn prioritize(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Answer<Scores> {
        match &self.prioritize {
            Some(answer) => {
                self.note("prioritize", pod, nodes);
                answer.clone()
            }
            // As an HTTP extender without prioritizeVerb does.
            None => Ok((nodes.iter().map(|node| (node.name().to_owned(), 0)).collect(), 0)),
        }
    }

    fn bind<'a>(&'a self, pod: &'a PodInfo, node: &'a str) -> BoxFuture<'a, Answer<()>> {
        self.log.push(format!("bind {} {} {node}", self.name, pod.name()));
        futures::future::ready(self.bind.clone().expect("only binders are asked to bind")).boxed()
    }
}
