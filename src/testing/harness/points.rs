//! Runs the extension points of a plugin.

use super::Harness;
use crate::clock::Now;
use crate::framework::{
    Candidates, CycleContext, CycleState, Diagnosis, Fragment, NodeOutcome, NodeRef, NodeScores, PermitOutcome,
    PluginError, PostFilterContext, PostFilterOutcome, PreFilterOutcome, PreScoreOutcome, Rejection, Scratch,
    SignOutcome, Verdict,
};
use crate::testing::{NoFilters, NodeFixture, PodFixture};

/// The scores of all nodes: those from `Score`, and those after `NormalizeScore`.
pub type Scores = (Vec<i64>, Vec<i64>);

impl Harness {
    fn now(&self) -> Now {
        self.handle.clock().now()
    }

    /// Runs `PreFilter`, and returns its outcome with the cycle state.
    pub fn pre_filter(&self, pod: &PodFixture) -> (Result<PreFilterOutcome, PluginError>, CycleState) {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let plugin = self.registration.pre_filter.as_ref().expect("PreFilter");
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        (plugin.pre_filter(&mut cx), state)
    }

    /// Checks the verdict on a node without pods. Runs `PreFilter` first if the plugin has it.
    pub fn check_filter(&self, pod: &PodFixture, node: NodeFixture, expected: &Verdict) {
        self.check_filter_on(pod, node, &[], expected);
    }

    /// Checks the verdict on a node with pods. If `PreFilter` skips the filter, the node passes. If it rejects the pod, its
    /// rejection is the verdict.
    pub fn check_filter_on(&self, pod: &PodFixture, node: NodeFixture, on: &[PodFixture], expected: &Verdict) {
        let mut node = node.info();
        for pod in on {
            node.add_pod(pod.clone().info());
        }
        let mut state = CycleState::default();
        if self.registration.pre_filter.is_some() {
            let (outcome, left) = self.pre_filter(pod);
            match outcome.expect("PreFilter does not fail") {
                PreFilterOutcome::Skip => return assert_eq!(Verdict::Pass, *expected, "PreFilter skips the filter"),
                PreFilterOutcome::Reject(rejection) => return assert_eq!(Verdict::Reject(rejection), *expected),
                PreFilterOutcome::Pass | PreFilterOutcome::Nodes(_) => state = left,
            }
        }
        assert_eq!(self.filter(pod, NodeRef::outside(&node), &mut state).as_ref(), Ok(expected), "{pod:?}\n{node:?}");
    }

    /// Runs `PreFilter` and `Filter` on all nodes. Returns the rejection of each node, or `None` for a feasible node.
    ///
    /// # Panics
    ///
    /// Panics if the plugin fails, or if `PreFilter` restricts the nodes.
    pub fn rejections(&self, pod: &PodFixture) -> Vec<Option<Rejection>> {
        let nodes = NodeRef::all(&self.snapshot);
        let mut state = CycleState::default();
        if self.registration.pre_filter.is_some() {
            let (outcome, left) = self.pre_filter(pod);
            match outcome.expect("PreFilter does not fail") {
                PreFilterOutcome::Skip => return vec![None; nodes.len()],
                PreFilterOutcome::Reject(rejection) => return vec![Some(rejection); nodes.len()],
                PreFilterOutcome::Pass => state = left,
                PreFilterOutcome::Nodes(nodes) => panic!("PreFilter narrows the nodes to {nodes:?}"),
            }
        }
        let mut verdict = |node| self.filter(pod, node, &mut state).expect("Filter does not fail");
        let rejection = |verdict| if let Verdict::Reject(rejection) = verdict { Some(rejection) } else { None };
        nodes.into_iter().map(|node| rejection(verdict(node))).collect()
    }

    /// Runs `Filter` on a node without pods, without `PreFilter`.
    pub fn bare_filter(&self, pod: &PodFixture, node: NodeFixture) -> Result<Verdict, PluginError> {
        self.filter(pod, NodeRef::outside(&node.info()), &mut CycleState::default())
    }

    /// Runs `Filter` on one node, alone and as a block, and checks that both give the same verdict.
    pub fn filter(&self, pod: &PodFixture, node: NodeRef<'_>, state: &mut CycleState) -> Result<Verdict, PluginError> {
        let pod = pod.clone().info();
        let plugin = self.registration.filter.as_ref().expect("Filter");
        let cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state, now: self.now() };
        let verdict = plugin.filter(&cx, node, &mut Scratch::default());
        let nodes = [node];
        let mut block = Candidates::new(&nodes);
        let failed = plugin.filter_block(&cx, &mut block);
        assert_eq!(failed.as_ref().err(), verdict.as_ref().err());
        if let Ok(verdict) = &verdict {
            // A block in which all nodes are feasible has no outcomes.
            let of_block = match block.finish().0.pop() {
                None | Some(NodeOutcome::Feasible) => Verdict::Pass,
                Some(NodeOutcome::Rejected(_, rejection)) => Verdict::Reject(rejection),
                Some(NodeOutcome::Failed(_, error)) => {
                    panic!("the single node does not fail, and the block does: {error}")
                }
            };
            assert_eq!(of_block, *verdict, "the block and the single node differ");
        }
        verdict
    }

    /// Runs `PreScore` on all nodes, and returns its outcome with the cycle state.
    pub fn pre_score(&self, pod: &PodFixture) -> (Result<PreScoreOutcome, PluginError>, CycleState) {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let nodes = NodeRef::all(&self.snapshot);
        let plugin = self.registration.pre_score.as_ref().expect("PreScore");
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        (plugin.pre_score(&mut cx, &nodes), state)
    }

    /// Runs `Score` on all nodes, and `NormalizeScore` if the plugin has it.
    pub fn scores(&self, pod: &PodFixture, state: &mut CycleState) -> Result<Scores, PluginError> {
        let pod = pod.clone().info();
        let nodes = NodeRef::all(&self.snapshot);
        let cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state, now: self.now() };
        let plugin = self.registration.score.as_ref().expect("Score");
        let mut scores = vec![0; nodes.len()];
        let in_block = plugin.score_block(&cx, &mut NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] });
        let raw: Result<Vec<i64>, PluginError> = nodes.iter().map(|node| plugin.score(&cx, *node, None)).collect();
        // A block without nodes may still report missing state.
        if !nodes.is_empty() {
            assert_eq!(in_block.clone().map(|()| scores.clone()), raw, "the block and the single nodes differ");
        }
        in_block?;
        let raw = raw?;
        if let Some(normalize) = &self.registration.normalize {
            normalize.normalize(&cx, &mut NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] })?;
        }
        Ok((raw, scores))
    }

    /// Runs `PreScore` and then [`scores`](Self::scores). Returns `None` if `PreScore` skips the plugin.
    ///
    /// # Panics
    ///
    /// Panics if the plugin fails.
    pub fn score_all(&self, pod: &PodFixture) -> Option<Scores> {
        let mut state = CycleState::default();
        if self.registration.pre_score.is_some() {
            let (outcome, left) = self.pre_score(pod);
            match outcome.expect("PreScore does not fail") {
                PreScoreOutcome::Skip => return None,
                PreScoreOutcome::Pass => state = left,
            }
        }
        Some(self.scores(pod, &mut state).expect("Score does not fail"))
    }

    /// Runs `PostFilter` after a cycle without a feasible node.
    pub fn post_filter(&self, pod: &PodFixture, mut state: CycleState) -> Result<PostFilterOutcome, PluginError> {
        let pod = pod.clone().info();
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        let failed =
            PostFilterContext { diagnosis: &Diagnosis::default(), filters: &NoFilters, extenders: &(), random: 0 };
        self.registration.post_filter.as_ref().expect("PostFilter").post_filter(&mut cx, &failed)
    }

    /// Runs `Permit` for a node.
    pub fn permit(&self, pod: &PodFixture, node: &str) -> Result<PermitOutcome, PluginError> {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        self.registration.permit.as_ref().expect("Permit").permit(&mut cx, node)
    }

    /// Checks the fragments of the signature against these JSON texts.
    pub fn check_signature(&self, pod: &PodFixture, expected: &[(&'static str, &str)]) {
        let plugin = self.registration.sign.as_ref().expect("Sign");
        let expected = expected
            .iter()
            .map(|(name, json)| (*name, Fragment::from(serde_json::from_str::<serde_json::Value>(json).expect("JSON"))))
            .collect();
        assert_eq!(plugin.sign(&pod.clone().info()), Ok(SignOutcome::Fragments(expected)));
    }
}
