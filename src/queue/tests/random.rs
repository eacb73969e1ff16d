//! Random operations, checked against a model that knows only the existing pods and the plugins' answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fixture::{Answer, Bench, Fake, NODE_ADD, NODE_LABEL, NODE_TAINT, fake, setup};
use crate::clock::Rng;
use crate::config::Gate;
use crate::metrics::PendingQueue;
use crate::model::{ActionType, ClusterEvent, EventResource};
use crate::queue::{DumpedPod, Place, QueueDump};
use crate::testing::{PodFixture, pod};

const STEPS: usize = 1500;
const PODS: u64 = 25;
const PLUGINS: [&str; 4] = ["A", "G", "H", "S"];
const UPDATE: ClusterEvent = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE);

fn plugins() -> [Fake; 4] {
    [
        fake("A").on(NODE_ADD, Answer::Queue).on(UPDATE, Answer::Queue),
        fake("G").gates().on(NODE_LABEL, Answer::Queue),
        fake("H").gates().on(NODE_TAINT, Answer::Queue).on(NODE_ADD, Answer::Skip),
        fake("S").on(NODE_LABEL, Answer::Skip).on(NODE_TAINT, Answer::Error),
    ]
}

/// Whether the event makes a pod that the plugin rejected worth a retry.
fn helps(plugin: &str, event: &ClusterEvent) -> bool {
    match plugin {
        "A" => *event == NODE_ADD || *event == NODE_TAINT,
        "G" => *event == NODE_LABEL,
        "H" | "S" => *event == NODE_TAINT,
        _ => false,
    }
}

/// Whether the plugin registered for the event, so that the event may open the plugin's gate.
fn opens(plugin: &str, event: &ClusterEvent) -> bool {
    helps(plugin, event) || (plugin == "H" && *event == NODE_ADD) || (plugin == "S" && *event == NODE_LABEL)
}

/// A queue and the pods that exist.
struct Model {
    q: Bench,
    rng: Rng,
    seed: u64,
    hints: bool,
    /// Whether gates are checked before a pod enters a backoff queue.
    asks_first: bool,
    /// Versions of the pods that exist and are unassigned, by name.
    pods: BTreeMap<String, u64>,
    in_flight: BTreeSet<String>,
    /// Pods in flight that were deleted meanwhile.
    gone: BTreeSet<String>,
}

impl Model {
    fn new(seed: u64, hints: bool, pop_from_backoff: bool) -> Self {
        let q = setup(plugins())
            .gate(Gate::SchedulerQueueingHints, hints)
            .gate(Gate::SchedulerPopFromBackoffQ, pop_from_backoff)
            .build();
        q.queue.run(q.now());
        let (pods, in_flight, gone) = Default::default();
        Self { q, rng: Rng::from_seed(seed), seed, hints, asks_first: pop_from_backoff, pods, in_flight, gone }
    }

    fn fixture(&self, name: &str) -> PodFixture {
        let version = self.pods[name];
        let priority = i32::try_from(version % 3).expect("small");
        pod(name).priority(priority).label("version", &version.to_string())
    }

    fn any(&mut self, names: &BTreeSet<String>) -> Option<String> {
        (!names.is_empty()).then(|| names.iter().nth(self.rng.index(names.len())).expect("in range").clone())
    }

    fn step(&mut self) {
        let known: BTreeSet<String> = self.pods.keys().cloned().collect();
        let flying = self.in_flight.clone();
        match self.rng.below(12) {
            0 | 1 => self.add(),
            2 => {
                if let Some(name) = self.any(&known) {
                    self.update(&name);
                }
            }
            3 => {
                if let Some(name) = self.any(&known) {
                    self.delete(&name);
                }
            }
            4 | 5 => self.pop(),
            6 | 7 => {
                if let Some(name) = self.any(&flying) {
                    self.end_attempt(&name);
                }
            }
            8 => {
                let event = [NODE_ADD, NODE_LABEL, NODE_TAINT][self.rng.index(3)].clone();
                self.event(&event);
            }
            9 => {
                if let Some(name) = self.any(&known) {
                    self.q.activate(&[&name]);
                }
            }
            10 => self.turn_gate(),
            _ => {
                let milliseconds = [1, 300, 1000, 5000, 60_000][self.rng.index(5)];
                self.q.advance_ms(milliseconds);
                self.q.queue.flush(self.q.now());
            }
        }
    }

    fn add(&mut self) {
        let name = format!("p{}", self.rng.below(PODS));
        if !self.pods.contains_key(&name) && !self.in_flight.contains(&name) {
            self.pods.insert(name.clone(), self.rng.below(100));
            self.q.add(self.fixture(&name));
        }
    }

    fn update(&mut self, name: &str) {
        // Without hints the queue does not know the pods in flight. It would queue this pod twice, as upstream does.
        if !self.hints && self.in_flight.contains(name) {
            return;
        }
        let old = self.fixture(name);
        *self.pods.get_mut(name).expect("it exists") += 1;
        self.q.update(old, self.fixture(name));
    }

    fn delete(&mut self, name: &str) {
        self.q.delete(self.fixture(name));
        self.pods.remove(name);
        if self.in_flight.contains(name) {
            self.gone.insert(name.to_owned());
        }
    }

    fn pop(&mut self) {
        let before = self.q.queue.dump();
        let name = self.q.pop();
        if name.is_empty() {
            assert!(before.pods.iter().all(|pod| pod.place != Place::Active), "seed {}", self.seed);
            return;
        }
        assert!(self.pods.contains_key(&name), "seed {}: {name} was popped and does not exist", self.seed);
        self.in_flight.insert(name);
    }

    fn end_attempt(&mut self, name: &str) {
        self.in_flight.remove(name);
        if self.gone.remove(name) || self.rng.chance(1, 4) {
            self.pods.remove(name);
            self.q.queue.done(name);
            return;
        }
        let plugins: Vec<&str> = PLUGINS.into_iter().filter(|_| self.rng.chance(1, 3)).collect();
        let pending: Vec<&str> = plugins.iter().copied().filter(|_| self.rng.chance(1, 5)).collect();
        let newest = self.q.info(self.fixture(name));
        self.q.popped(name).pod = newest;
        self.q.fail_pending(name, &plugins, &pending);
    }

    fn turn_gate(&mut self) {
        let (plugin, name) = (["G", "H"][self.rng.index(2)], format!("p{}", self.rng.below(PODS)));
        if self.rng.chance(1, 2) { self.q.close(plugin, &name) } else { self.q.open(plugin, &name) }
    }

    /// Checks that an event moves exactly the pods that a scan over all pods would move.
    fn event(&mut self, event: &ClusterEvent) {
        let before = self.q.queue.dump();
        self.q.event(event);
        let after: BTreeMap<String, DumpedPod> =
            self.q.queue.dump().pods.into_iter().map(|pod| (pod.pod.name().to_owned(), pod)).collect();
        for was in before.pods {
            let is = &after[was.pod.name()];
            let registered = |plugin: &Arc<str>| opens(plugin, event);
            let moves = was.place == Place::Unschedulable
                && was.gating_plugin.as_ref().is_none_or(registered)
                && (was.rejectors.is_empty()
                    || was
                        .rejectors
                        .iter()
                        .any(|plugin| if self.hints { helps(plugin, event) } else { registered(plugin) }));
            // A moved pod may be gated on the way, and then stays.
            let stays = is.place == was.place;
            assert!(
                stays != moves || (moves && is.gating_plugin.is_some()),
                "seed {}: {} {event:?}\n{was:?}\n{is:?}",
                self.seed,
                was.pod.name()
            );
        }
    }

    /// Checks that the queue holds each existing pod in one place or in flight and no other pods, and that the metrics agree.
    fn check(&self) {
        let (seed, dump) = (self.seed, self.q.queue.dump());
        let mut queued = BTreeSet::new();
        for pod in &dump.pods {
            let name = pod.pod.name();
            assert!(queued.insert(name.to_owned()), "seed {seed}: {name} is in two places");
            assert!(!self.in_flight.contains(name), "seed {seed}: {name} is queued and in flight");
            assert_eq!(pod.pod.pod().labels()["version"], self.pods[name].to_string(), "seed {seed}: {name} is stale");
            // Without `SchedulerPopFromBackoffQ`, gates are checked when pods leave the backoff queues.
            if pod.gating_plugin.is_some() && self.asks_first {
                assert_eq!(pod.place, Place::Unschedulable, "seed {seed}: {name} is gated");
            }
            if matches!(pod.place, Place::Backoff | Place::ErrorBackoff) {
                assert_eq!(pod.place == Place::ErrorBackoff, pod.rejectors.is_empty(), "seed {seed}: {name}");
            }
        }
        let waiting: BTreeSet<String> =
            self.pods.keys().filter(|name| !self.in_flight.contains(*name)).cloned().collect();
        assert_eq!(queued, waiting, "seed {seed}: a pod was lost");
        self.check_in_flight(&dump);
        self.check_gauges(&dump);
    }

    fn check_in_flight(&self, dump: &QueueDump) {
        let flying: BTreeSet<String> = dump.in_flight.iter().map(|pod| pod.name().to_owned()).collect();
        let expected = if self.hints { self.in_flight.clone() } else { BTreeSet::new() };
        assert_eq!(flying, expected, "seed {}", self.seed);
        assert!(!flying.is_empty() || dump.in_flight_events == 0, "seed {}: events are kept for nobody", self.seed);
    }

    fn check_gauges(&self, dump: &QueueDump) {
        let count = |counts: &dyn Fn(&DumpedPod) -> bool| {
            i64::try_from(dump.pods.iter().filter(|pod| counts(pod)).count()).expect("few pods")
        };
        let unschedulable = |pod: &DumpedPod| pod.place == Place::Unschedulable;
        let gated = |pod: &DumpedPod| pod.gating_plugin.is_some();
        let expected = [
            count(&|pod| pod.place == Place::Active),
            count(&|pod| matches!(pod.place, Place::Backoff | Place::ErrorBackoff)),
            count(&|pod| unschedulable(pod) && !gated(pod)),
            count(&|pod| unschedulable(pod) && gated(pod)),
        ];
        let gauges = PendingQueue::ALL.map(|queue| self.q.metrics.pending_pods(queue).get());
        assert_eq!(gauges, expected, "seed {}", self.seed);
        for plugin in PLUGINS {
            let gauge = self.q.metrics.unschedulable_pods(plugin, "default-scheduler").get();
            assert_eq!(gauge, count(&|pod| pod.rejectors.iter().any(|name| &**name == plugin)), "seed {}", self.seed);
        }
    }

    /// Checks that every pod is popped in the end if all gates are open and time advances.
    fn drain(&mut self) {
        for plugin in ["G", "H"] {
            (0..PODS).for_each(|pod| self.q.open(plugin, &format!("p{pod}")));
        }
        for name in self.in_flight.clone() {
            self.end_attempt(&name);
        }
        for event in [NODE_ADD, NODE_LABEL, NODE_TAINT] {
            self.event(&event);
        }
        while let Some(deadline) = self.q.queue.next_deadline() {
            assert!(deadline >= self.q.now().mono || !self.pods.is_empty(), "seed {}", self.seed);
            self.q.clock.advance_to(deadline);
            self.q.queue.flush(self.q.now());
            self.check();
            loop {
                let name = self.q.pop();
                if name.is_empty() {
                    break;
                }
                self.pods.remove(&name);
                self.q.queue.done(&name);
            }
        }
        let mut left: Vec<String> = std::iter::from_fn(|| Some(self.q.pop()).filter(|name| !name.is_empty())).collect();
        left.sort();
        assert_eq!(left, self.pods.keys().cloned().collect::<Vec<_>>(), "seed {}: a pod waits for ever", self.seed);
    }
}

fn check(seed: u64, hints: bool, pop_from_backoff: bool) {
    let mut model = Model::new(seed, hints, pop_from_backoff);
    for _ in 0..STEPS {
        model.step();
        model.check();
    }
    model.drain();
}

#[test]
fn no_pod_is_lost_or_duplicated() {
    for seed in 0..20 {
        check(seed, true, true);
    }
}

#[test]
fn no_pod_is_lost_or_duplicated_without_popping_backoff_q() {
    for seed in 100..110 {
        check(seed, true, false);
    }
}

#[test]
fn no_pod_is_lost_or_duplicated_with_hints_off() {
    for seed in 200..210 {
        check(seed, false, true);
        check(seed, false, false);
    }
}
