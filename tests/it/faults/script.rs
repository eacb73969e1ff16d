//! The seeded script that all probes, the server's hook and the world share: what goes wrong, where and when.

mod acts;
mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use kube_scheduler::apiserver::Gate;
use kube_scheduler::clock::{Mono, Rng, SimClock};
use kube_scheduler::engine::{PlaceCheck, Tasks, UnfinishedCycles};
use kube_scheduler::model::PodInfo;
use kube_scheduler::scheduler::SchedulerContext;
use tokio::runtime::Runtime;

use super::cluster::Cluster;
use super::coverage::{Act, Coverage, Step};

/// Number of polls without a change after which the runtime counts as idle. Chains of wake-ups are shorter.
const IDLE_ROUNDS: usize = 24;

/// Maximum number of busy polls. More of them mean an endless loop.
const BUSY_ROUNDS: usize = 100_000;

/// How many things are tried until one is possible: there may be no pod that waits, for example.
const TRIES: usize = 5;

/// The engine's parts that a script looks at while the engine itself is busy.
struct Sight {
    shared: Arc<SchedulerContext>,
    check: PlaceCheck,
    tasks: Tasks,
}

/// The script.
pub(super) struct Script {
    pub(super) cluster: Cluster,
    clock: SimClock,
    runtime: Weak<Runtime>,
    sight: OnceLock<Sight>,
    hears_little: bool,
    /// Never held while anything else is called.
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    calm: bool,
    /// Steps that every run takes once.
    once: VecDeque<(Step, Act)>,
    /// Of a hundred calls of the probe, how many see something happen.
    heat: u64,
    /// A step that is taken whenever possible, so that rare steps are covered, too.
    favourite: (Step, Act),
    underway: UnfinishedCycles,
    /// Binding cycles of each pod, by UID.
    binding: BTreeMap<String, usize>,
    /// The patience that Permit has with each pod, by UID.
    patience: BTreeMap<String, Mono>,
    /// Requests that are held.
    gates: Vec<Gate>,
    /// Kinds whose watches are held, and the gate they wait at.
    held: BTreeMap<&'static str, Gate>,
    requests: u64,
    writes: u64,
    coverage: Coverage,
    trace: Vec<String>,
    wrong: Vec<String>,
}

impl Script {
    pub(super) fn new(seed: u64, cluster: Cluster, clock: SimClock, runtime: Weak<Runtime>) -> Arc<Self> {
        let mut rng = Rng::from_seed(seed);
        let pair = usize::try_from(seed).unwrap_or(0) % (Step::ALL.len() * Act::ALL.len());
        let favourite = (Step::ALL[pair % Step::ALL.len()], Act::ALL[pair / Step::ALL.len()]);
        let (hears_little, heat) = (rng.chance(1, 3), [3, 8, 15, 30][rng.index(4)]);
        let state = Mutex::new(State {
            rng,
            calm: true,
            once: VecDeque::new(),
            heat,
            favourite,
            underway: UnfinishedCycles::default(),
            binding: BTreeMap::new(),
            patience: BTreeMap::new(),
            gates: Vec::new(),
            held: BTreeMap::new(),
            requests: 0,
            writes: 0,
            coverage: Coverage::default(),
            trace: Vec::new(),
            wrong: Vec::new(),
        });
        Arc::new(Self { cluster, clock, runtime, sight: OnceLock::new(), hears_little, state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the script see the engine.
    pub(super) fn watch(&self, shared: Arc<SchedulerContext>, check: PlaceCheck, tasks: Tasks) {
        let _ = self.sight.set(Sight { shared, check, tasks });
    }

    pub(super) fn hears_little(&self) -> bool {
        self.hears_little
    }

    /// From now on things happen.
    pub(super) fn begin(&self) {
        self.lock().calm = false;
    }

    /// These happen, each at the next call of its step, one after the other.
    pub(super) fn happen(&self, acts: &[(Step, Act)]) {
        self.lock().once.extend(acts);
    }

    /// Whether all of them have happened.
    pub(super) fn has_happened(&self) -> bool {
        self.lock().once.is_empty()
    }

    /// From now on nothing happens, and what was held goes on.
    pub(super) fn end(&self) {
        let (gates, held) = {
            let mut state = self.lock();
            state.calm = true;
            (std::mem::take(&mut state.gates), std::mem::take(&mut state.held))
        };
        gates.iter().chain(held.values()).for_each(Gate::open);
    }

    pub(super) fn with_rng<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.lock().rng)
    }

    pub(super) fn note(&self, line: String) {
        self.lock().trace.push(line);
    }

    /// Returns the trace and the coverage.
    pub(super) fn trace(&self) -> (Vec<String>, Coverage) {
        let state = self.lock();
        (state.trace.clone(), state.coverage.clone())
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().wrong)
    }

    // Where pods are.

    pub(super) fn cycle_begins(&self, pod: &PodInfo) {
        self.lock().underway.cycle = Some(pod.uid().to_owned());
    }

    pub(super) fn cycle_ended(&self) {
        self.lock().underway.cycle = None;
    }

    pub(super) fn reserved(&self, pod: &PodInfo) {
        *self.lock().binding.entry(pod.uid().to_owned()).or_default() += 1;
    }

    pub(super) fn unreserved(&self, pod: &PodInfo) {
        let mut state = self.lock();
        state.patience.remove(pod.uid());
        if let Some(count) = state.binding.get_mut(pod.uid()) {
            *count -= 1;
            if *count == 0 {
                state.binding.remove(pod.uid());
            }
        }
    }

    pub(super) fn bound(&self, pod: &PodInfo) {
        self.unreserved(pod);
    }

    pub(super) fn wrote(&self) {
        self.lock().writes += 1;
    }

    /// Checks everything that can be checked at any time.
    pub(super) fn check(&self, unsettled: bool, when: &str) {
        let Some(sight) = self.sight.get() else { return };
        self.cluster.read_history();
        let underway = {
            let state = self.lock();
            let binding: BTreeSet<String> = state.binding.keys().cloned().collect();
            UnfinishedCycles { binding, unsettled, ..state.underway.clone() }
        };
        let mut wrong: Vec<String> = sight.check.check(&underway).iter().map(ToString::to_string).collect();
        wrong.extend(self.cluster.wrong());
        let bugs = sight.shared.bugs.load(std::sync::atomic::Ordering::Relaxed);
        if bugs > 0 {
            wrong.push(format!("{bugs} reservations were dropped"));
        }
        let mut state = self.lock();
        for wrong in wrong {
            let line = format!("{when}: {wrong}");
            state.trace.push(format!("WRONG {line}"));
            state.wrong.push(line);
        }
    }

    // Letting the runtime run.

    /// Everything that changes when something happens.
    fn fingerprint(&self) -> [usize; 9] {
        let server = &self.cluster.server;
        let (requests, writes) = {
            let state = self.lock();
            (state.requests, state.writes)
        };
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let sight = self.sight.get();
        [
            number(server.version()),
            server.pending(),
            server.held(),
            self.clock.sleepers(),
            number(requests),
            number(writes),
            sight.map_or(0, |sight| sight.shared.writes.pending()),
            sight.map_or(0, |sight| sight.tasks.running()),
            sight.map_or(0, |sight| sight.shared.waiting_pods.all().len()),
        ]
    }

    /// Runs until nothing changes any more.
    pub(super) async fn settle(&self) {
        let (mut idle, mut before) = (0, self.fingerprint());
        for _ in 0..BUSY_ROUNDS {
            tokio::task::yield_now().await;
            let after = self.fingerprint();
            idle = if before == after && self.cluster.server.pending() == 0 { idle + 1 } else { 0 };
            before = after;
            if idle == IDLE_ROUNDS {
                return;
            }
        }
        self.lock().wrong.push(format!("the runtime never comes to rest: {before:?}"));
    }

    fn settle_here(&self) {
        let Some(runtime) = self.runtime.upgrade() else { return };
        runtime.block_on(self.settle());
    }

    // What happens.

    /// Something may happen in a synchronous call of the probe, and be heard of before the call returns.
    pub(super) fn strike(&self, step: Step, pod: Option<&PodInfo>) {
        let Some(heard) = self.happen_at(step, pod.map(PodInfo::name)) else { return };
        if step == Step::PreEnqueue {
            // The queue's lock is held.
        } else if heard && tokio::runtime::Handle::try_current().is_err() {
            self.settle_here();
            self.lock().coverage.delivered(step);
            self.check(false, &format!("{step:?}, settled"));
        } else {
            self.check(true, &format!("{step:?}"));
        }
    }

    /// The same in a task.
    pub(super) async fn strike_in_task(&self, step: Step, pod: &PodInfo) {
        let Some(heard) = self.happen_at(step, Some(pod.name())) else { return };
        self.check(true, &format!("{step:?}"));
        if heard {
            self.settle().await;
            self.lock().coverage.delivered(step);
            self.check(true, &format!("{step:?}, settled"));
        }
    }

    /// Something happens between two steps of the world.
    pub(super) fn strike_between(&self) {
        let act = self.with_rng(|rng| Act::ALL[rng.index(Act::ALL.len())]);
        let done = self.act(act, None);
        self.happened(Step::Between, act, done);
        self.lock().coverage.delivered(Step::Between);
        self.check(true, "Between");
    }

    /// Something may happen now. Says whether it did, and if so, whether it is to be heard of at once.
    fn happen_at(&self, step: Step, pod: Option<&str>) -> Option<bool> {
        let (mut act, heard, tries) = self.plan(step)?;
        for _ in 0..tries {
            let done = self.act(act, pod);
            self.happened(step, act, done);
            if done {
                return Some(heard);
            }
            if tries == 1 {
                self.lock().wrong.push(format!("{act:?} is not possible at {step:?}"));
            }
            act = self.lock().any_act(step);
        }
        None
    }

    fn plan(&self, step: Step) -> Option<(Act, bool, usize)> {
        let mut state = self.lock();
        if state.once.front().is_some_and(|(at, _)| *at == step) {
            return state.once.pop_front().map(|(_, act)| (act, true, 1));
        }
        if state.calm {
            return None;
        }
        let share = match step {
            // These are called for each node.
            Step::Filter | Step::Score | Step::PreEnqueue => 1,
            // These few pods get to.
            Step::PreBind | Step::Bind | Step::BindRequest | Step::PostBind | Step::Unreserve => 4,
            _ => 2,
        };
        // Others have to get through to where the favourite is.
        let heat = if state.favourite.0 == step { 100 } else { state.heat * share };
        if !state.rng.chance(heat, 200) {
            return None;
        }
        let act = state.any_act(step);
        Some((act, state.rng.chance(2, 3), TRIES))
    }

    fn happened(&self, step: Step, act: Act, done: bool) {
        let mut state = self.lock();
        if done {
            state.coverage.act(step, act);
        }
        state.trace.push(format!("{step:?}: {act:?}{}", if done { "" } else { " (no)" }));
    }

    /// Chooses the result of the probe: usually success, which is "".
    pub(super) fn answer(&self, step: Step, answers: &[&'static str]) -> &'static str {
        let mut state = self.lock();
        if state.calm {
            return "";
        }
        let often = match step {
            Step::Filter | Step::Score => 2,
            Step::PreFilter | Step::PreScore | Step::Reserve | Step::PreEnqueue => 6,
            Step::Permit | Step::PreBind => 50,
            Step::PostFilter | Step::PostBind => 60,
            _ => 20,
        };
        // A meeting with a pod on its way needs pods on their way, and pods that get through.
        let sought = match (step, state.favourite.1) {
            (Step::Permit, Act::AllowWaiting | Act::RejectWaiting | Act::PreemptWaiting) => Some("wait"),
            (Step::PreBind, Act::CancelPreBind) => Some("delay"),
            _ => None,
        };
        let sought = sought.filter(|sought| answers.contains(sought));
        if !state.rng.chance(if sought.is_some() { 50 } else { often }, 100) {
            return "";
        }
        let at = state.rng.index(answers.len());
        let answer = sought.unwrap_or(answers[at]);
        state.coverage.outcome(step, answer);
        state.trace.push(format!("{step:?}: {answer}"));
        answer
    }

    /// Chooses the timeout of Permit for the pod.
    pub(super) fn patience(&self, pod: &PodInfo, now: Mono) -> Duration {
        let mut state = self.lock();
        let patience = Duration::from_millis(500 + state.rng.below(30_000));
        state.patience.insert(pod.uid().to_owned(), now + patience);
        patience
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.with_rng(|rng| 1 + rng.below(5_000)))
    }

    /// Keys of pods, some of which may be gone.
    pub(super) fn some_pods(&self) -> Vec<String> {
        let mut state = self.lock();
        (0..3).map(|_| format!("default/p{}", state.rng.below(12))).collect()
    }

    /// Moves the clock.
    pub(super) fn advance(&self, to: Mono) {
        if let Some(sight) = self.sight.get() {
            let waiting = sight.shared.waiting_pods.all();
            let mut state = self.lock();
            let due = waiting.iter().filter(|pod| state.patience.get(pod.pod().uid()).is_some_and(|at| *at <= to));
            for _ in 0..due.count() {
                state.coverage.outcome(Step::Between, "timeout");
            }
        }
        self.clock.advance_to(to);
        self.cluster.server.tick();
    }

    /// Lets every pod go on that waits.
    pub(super) fn allow_all(&self) {
        let waiting = self.sight.get().map(|sight| sight.shared.waiting_pods.all()).unwrap_or_default();
        for pod in waiting {
            pod.allow(super::probe::NAME);
        }
    }
}

impl State {
    /// Something that can happen there.
    fn any_act(&mut self, step: Step) -> Act {
        loop {
            let any = Act::ALL[self.rng.index(Act::ALL.len())];
            let act = if self.favourite.0 == step && self.rng.chance(1, 2) { self.favourite.1 } else { any };
            if act.is_possible_at(step) {
                return act;
            }
        }
    }
}

/// Polls a future of the script's once the runtime runs; for callers outside of it.
pub(super) fn run<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    runtime.block_on(future)
}
