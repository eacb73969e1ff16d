//! The acts of the script: changes of objects, disturbed watches, and interference with pods in their cycles.

use std::time::Duration;

use kube_scheduler::apiserver::{Gate, Kind, kinds};
use kube_scheduler::clock::Rng;

use super::super::coverage::Act;
use super::super::probe;
use super::Script;

impl Script {
    /// Performs an act, on this pod where the act is about one. Returns whether it was possible.
    pub(super) fn act(&self, act: Act, pod: Option<&str>) -> bool {
        let cluster = &self.cluster;
        let mut rng = self.with_rng(Rng::split);
        let rng = &mut rng;
        let this = |rng: &mut Rng| pod.map(str::to_owned).or_else(|| cluster.any_pod(rng)).unwrap_or_default();
        match act {
            Act::DeletePod => cluster.delete_pod(&this(rng)),
            Act::DeleteOtherPod => {
                cluster.any_pod(rng).is_some_and(|other| Some(&*other) != pod && cluster.delete_pod(&other))
            }
            Act::TerminatePod => cluster.terminate_pod(&this(rng)),
            Act::ReplacePod => cluster.replace_pod(&this(rng), rng),
            Act::UpdatePod => cluster.update_pod(&this(rng), rng),
            Act::FinishPod => cluster.finish_pod(&this(rng), rng),
            Act::BindPod => cluster.bind_pod(&this(rng), rng) || cluster.bind_any_pod(rng),
            Act::CreatePod => cluster.create_pod(rng),
            Act::DeleteNode => cluster.any_node(rng).is_some_and(|node| cluster.delete_node(&node)),
            Act::UpdateNode => cluster.any_node(rng).is_some_and(|node| cluster.update_node(&node, rng)),
            Act::CreateNode => cluster.create_node(rng),
            Act::DropWatches | Act::EndWatches | Act::Compact | Act::HoldWatches => self.disturb(act, rng),
            Act::Garbage => cluster.garbage(rng),
            Act::OpenGate => self.open(rng),
            Act::TimePasses => {
                self.advance(self.clock.now().mono + Duration::from_millis(rng.below(3_000)));
                true
            }
            Act::Activate | Act::AllowWaiting | Act::RejectWaiting | Act::PreemptWaiting | Act::CancelPreBind => {
                self.interfere(act, rng)
            }
        }
    }

    /// Disturbs watches of pods or nodes.
    fn disturb(&self, act: Act, rng: &mut Rng) -> bool {
        let of_pods = rng.chance(2, 3);
        let kind: &'static Kind = if of_pods { &kinds::PODS } else { &kinds::NODES };
        let faults = self.cluster.server.faults();
        match act {
            Act::DropWatches if rng.chance(1, 4) => faults.drop_all_watches(),
            Act::DropWatches => faults.drop_watches(kind),
            Act::EndWatches => faults.end_watches(kind),
            Act::Compact => {
                self.cluster.compact(of_pods);
                faults.drop_watches(kind);
            }
            _ => {
                self.lock().held.entry(kind.plural).or_default();
                faults.drop_watches(kind);
            }
        }
        true
    }

    /// Does to pods in their cycles what other plugins can do.
    fn interfere(&self, act: Act, rng: &mut Rng) -> bool {
        let Some(sight) = self.sight.get() else { return false };
        if act == Act::Activate {
            sight.shared.queue.activate_at(&self.some_pods(), self.clock.now());
            return true;
        }
        if act == Act::CancelPreBind {
            let binding: Vec<String> = self.lock().binding.keys().cloned().collect();
            let cancel =
                |uid: &String| sight.shared.pods_in_pre_bind.get(uid).is_some_and(|pod| pod.cancel("preempted"));
            return binding.iter().any(cancel);
        }
        let waiting = sight.shared.waiting_pods.all();
        if waiting.is_empty() {
            return false;
        }
        let pod = &waiting[rng.index(waiting.len())];
        match act {
            Act::AllowWaiting => {
                pod.allow(probe::NAME);
                true
            }
            Act::RejectWaiting => pod.reject(probe::NAME, "the probe has pondered"),
            _ => pod.preempt(probe::NAME, "preempted"),
        }
    }

    /// Releases one held request or watch.
    fn open(&self, rng: &mut Rng) -> bool {
        let mut state = self.lock();
        let gate = if state.held.is_empty() || (!state.gates.is_empty() && rng.chance(1, 2)) {
            let gates = state.gates.len();
            (gates > 0).then(|| state.gates.swap_remove(rng.index(gates)))
        } else {
            state.held.pop_first().map(|(_, gate)| gate)
        };
        drop(state);
        gate.inspect(Gate::open).is_some()
    }
}
