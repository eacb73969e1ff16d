//! Steps of the scheduler's wall clock, there and back, in the middle of many bindings. Its monotonic clock is left alone, as
//! on a machine whose time is set.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use kube_scheduler::clock::Clock;
use libtest_mimic::Failed;
use serde_json::json;
use tokio::task::JoinHandle;

use super::proxy::{Asked, Fault, Proxy};
use super::{PODS, Scene, create_pods, create_pods_like, nodes_of, start_with, wait_until_bound};
use crate::behaviour::binds::list;
use crate::support::cluster::ControlPlane;

/// The offsets that the clock steps to, in seconds: hours and days, forwards and back.
const STEPS: [i64; 8] = [7200, -7200, 3 * 86_400, -86_400, 40, 30 * 86_400, -3600, 0];

/// Between two steps.
const STEP: Duration = Duration::from_millis(150);

/// Pods of which the first bindings fail, and pods for which there is no node at first.
const FEW: usize = 20;

/// So many bindings of a pod fail: it waits 1, 2 and 4 seconds.
const FAILURES: u32 = 3;

/// How much later than its backoff a pod may be tried: the queue looks once a second, and there are 1,000 others.
const LATE: Duration = Duration::from_secs(8);

type Tries = Arc<Mutex<BTreeMap<String, Vec<Instant>>>>;

/// The wall clock steps while 1,000 pods are bound, others wait for a node, and others are in backoff. These come back after
/// their backoff by the monotonic clock, no sooner, and not hours later.
pub(crate) fn survives_clock_steps() -> Result<(), Failed> {
    let library = library()?;
    let scene = Scene::open()?;
    let plane = &scene.plane;
    let proxy = Proxy::start(plane)?;
    let tries = Tries::default();
    proxy.play(failing_at_first(tries.clone()));
    let clock = Steps::begin(plane)?;
    let more = json!({
        "clientConnection": {"kubeconfig": plane.kubeconfig_through("clock", proxy.address)?, "qps": 1000, "burst": 1000},
    });
    let mut scheduler = start_with(
        plane,
        "scheduler",
        more,
        &[
            ("LD_PRELOAD", &library.to_string_lossy()),
            ("FAKETIME_TIMESTAMP_FILE", &clock.path.to_string_lossy()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ],
    )?;
    create_pods_like(plane, "waits", FEW, &json!({"spec": {"nodeSelector": {"tier": "gold"}}}))?;
    create_pods(plane, "delayed", FEW)?;
    create_pods(plane, "p", PODS)?;
    wait_until_bound(plane, &mut scheduler, PODS + FEW)?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"tier": "gold"}}}));
    let labelled = plane.runtime.block_on(nodes_of(plane).patch("node-0", &PatchParams::default(), &label));
    labelled.map_err(|error| error.to_string())?;
    wait_until_bound(plane, &mut scheduler, PODS + 2 * FEW)?;
    clock.end()?;
    scene.check(&mut scheduler)?;
    check_tries(&tries.lock().expect("nothing panics under it"))?;
    check_stepped(plane)?;
    drop(scheduler);
    scene.close()
}

/// Debian's libfaketime, the one for programs with threads.
fn library() -> Result<PathBuf, String> {
    let folders = fs::read_dir("/usr/lib").map_err(|error| format!("/usr/lib: {error}"))?;
    let files = folders.filter_map(|folder| Some(folder.ok()?.path().join("faketime/libfaketimeMT.so.1")));
    files.into_iter().find(|file| file.exists()).ok_or_else(|| {
        "libfaketime is missing, which makes the scheduler's clock step: apt-get install libfaketime".to_owned()
    })
}

/// Has the wall clock of whoever reads its file step on and on.
struct Steps {
    path: PathBuf,
    task: JoinHandle<String>,
}

impl Steps {
    fn begin(plane: &ControlPlane) -> Result<Self, String> {
        let path = plane.folder().join("clock");
        step(&path, 0)?;
        let file = path.clone();
        let task = plane.runtime.spawn(async move {
            let clock = Clock::real();
            let mut offsets = STEPS.iter().cycle();
            loop {
                if let Err(error) = offsets.next().map_or(Ok(()), |offset| step(&file, *offset)) {
                    return error;
                }
                clock.sleep(STEP).await;
            }
        });
        Ok(Self { path, task })
    }

    fn end(self) -> Result<(), String> {
        if self.task.is_finished() {
            return Err("the clock has stopped stepping".to_owned());
        }
        self.task.abort();
        Ok(())
    }
}

/// At once, since the file is read at any time.
fn step(path: &Path, offset: i64) -> Result<(), String> {
    let new = path.with_extension("new");
    fs::write(&new, format!("{offset:+}\n")).map_err(|error| format!("{}: {error}", new.display()))?;
    fs::rename(&new, path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The first bindings of some pods fail, and it is written down when they were tried.
#[expect(clippy::disallowed_methods, reason = "the scheduler runs in real time")]
fn failing_at_first(tries: Tries) -> impl FnMut(&Asked) -> Fault + Send + 'static {
    move |asked| {
        let Some(pod) = asked.bound().filter(|pod| pod.starts_with("delayed-")) else { return Fault::None };
        let mut tries = tries.lock().expect("nothing panics under it");
        let tries = tries.entry(pod.to_owned()).or_default();
        tries.push(Instant::now());
        if tries.len() <= FAILURES as usize { Fault::Code(500) } else { Fault::None }
    }
}

fn check_tries(tries: &BTreeMap<String, Vec<Instant>>) -> Result<(), String> {
    let mut most = Duration::ZERO;
    for (pod, tries) in tries {
        if tries.len() != FAILURES as usize + 1 {
            return Err(format!("{pod} was tried {} times", tries.len()));
        }
        for (nth, pair) in (0..).zip(tries.windows(2)) {
            let (backoff, waited) = (Duration::from_secs(1 << nth), pair[1] - pair[0]);
            if waited < backoff || waited > backoff + LATE {
                return Err(format!("{pod} waited {waited:.1?} instead of {backoff:?}"));
            }
            most = most.max(waited.saturating_sub(backoff));
        }
    }
    println!("{} pods were retried at most {most:.1?} after the end of their backoff", tries.len());
    if tries.len() == FEW { Ok(()) } else { Err(format!("{} pods were in backoff", tries.len())) }
}

/// The scheduler has written times that were far off, both ways; otherwise its clock has not stepped.
fn check_stepped(plane: &ControlPlane) -> Result<(), String> {
    let events: Vec<Event> = list(plane, "default")?;
    let off = |event: &Event| {
        let created = event.metadata.creation_timestamp.as_ref()?.0.as_second();
        Some(event.event_time.as_ref()?.0.as_second() - created)
    };
    let offs: Vec<i64> = events.iter().filter_map(off).collect();
    let [early, late] =
        [offs.iter().filter(|off| **off < -3000).count(), offs.iter().filter(|off| **off > 3000).count()];
    println!("of {} events {early} were hours early and {late} hours late", offs.len());
    if early < FEW || late < FEW { Err("the scheduler's clock did not step".to_owned()) } else { Ok(()) }
}
