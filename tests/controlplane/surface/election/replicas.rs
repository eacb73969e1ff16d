//! Three replicas on ways of their own to the API server.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use libtest_mimic::Failed;

use super::{BOUND, lease, start, wait_for_holder};
use crate::behaviour::survives::proxy::{Fault, Proxy};
use crate::behaviour::survives::relay::Relay;
use crate::behaviour::survives::{Scene, count_bound, create_pods, wait_until_bound};
use crate::support::cluster::{ControlPlane, Process, wait_for};

/// Duration of a lease that is not renewed.
const LEASE_DURATION: Duration = Duration::from_secs(3);

/// `leaseDuration + 2 × 2.2 × retryPeriod`, which is 5.2 s, and what a slow machine adds to requests.
const TAKEOVER: Duration = Duration::from_secs(6);

/// Maximum delay between sending a request and observing it here.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// How many requests a process that is continued may have been about to send when it was stopped: one a thread, and what
/// these had handed to the connection.
const IN_FLIGHT: usize = 4;

/// Pods that come when something happens: at 40 requests a second they are bound in more than two seconds.
const PODS: usize = 120;

/// Faults of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT when another one leads.
    Stop,
    /// SIGTERM.
    End,
    /// Everything that it and the API server send each other is lost. Connections stay open.
    Cut,
    /// Requests arrive, but the responses are lost.
    Mute,
}

/// The writes of a replica as they pass: when, and what.
type Writes = Arc<Mutex<Vec<(Instant, String)>>>;

/// A replica, and its way to the API server.
struct Replica {
    process: Process,
    relay: Relay,
    writes: Writes,
}

impl Replica {
    fn start(plane: &ControlPlane, name: &str) -> Result<Self, String> {
        let proxy = Proxy::start(plane)?;
        let relay = Relay::start(plane, proxy.address)?;
        let writes = Writes::default();
        let heard = writes.clone();
        proxy.play(move |asked| {
            if asked.method != Method::GET {
                let write = (now(), format!("{} {}", asked.method, asked.path));
                heard.lock().expect("nothing panics under it").push(write);
            }
            Fault::None
        });
        let kubeconfig = plane.kubeconfig_through(name, relay.address)?;
        let process = start(plane, true, name, &kubeconfig, &[])?;
        Ok(Self { process, relay, writes })
    }

    /// Whether it leads: its log says so last.
    fn leads(&self) -> bool {
        let text = self.process.output();
        let won = text.rfind("Successfully acquired lease");
        won.is_some() && text.rfind("Failed to renew lease") < won
    }

    fn suffer(&self, act: Act) -> Result<(), String> {
        match act {
            Act::Kill => self.process.signal("KILL")?,
            Act::Stop => self.process.signal("STOP")?,
            Act::End => self.process.signal("TERM")?,
            Act::Cut => {
                self.relay.be_deaf(true);
                self.relay.hold();
            }
            Act::Mute => self.relay.be_mute(),
        }
        Ok(())
    }

    /// The writes that have come after this time. Events of the election itself do not count: they say that it is over.
    fn writes_after(&self, time: Instant) -> Vec<String> {
        let writes = self.writes.lock().expect("nothing panics under it");
        let late = writes.iter().filter(|(at, what)| *at > time && !what.ends_with("/namespaces/kube-system/events"));
        late.map(|(at, what)| format!("{what} after {:.1?}", at.duration_since(time))).collect()
    }

    /// Waits for its end, and judges it.
    fn check_end(&mut self, act: Act) -> Result<(), String> {
        let status = wait_for("its end", BOUND, || Ok(self.process.ended()))
            .map_err(|error| format!("{act:?}: {error}; {}", self.process.tail()))?;
        let (expected, words) = match act {
            Act::Kill => (None, ""),
            Act::End => (Some(0), "Requested to terminate, exiting"),
            Act::Stop | Act::Cut | Act::Mute => (Some(1), "Leaderelection lost"),
        };
        let tail = self.process.tail();
        if status.code() == expected && tail.contains(words) {
            return Ok(());
        }
        Err(format!("{act:?} ended it with {status}; {tail}"))
    }
}

/// Three replicas: what may befall one befalls the one that leads. Each time another one takes over in time, and in the end
/// all pods are bound, each once.
pub(crate) fn three_replicas_take_turns() -> Result<(), Failed> {
    let scene = Scene::open()?;
    let plane = &scene.plane;
    let mut replicas = Vec::new();
    for at in 0..3 {
        replicas.push(Replica::start(plane, &format!("replica-{at}"))?);
    }
    let acts = [Act::Kill, Act::Stop, Act::End, Act::Cut, Act::Mute];
    for (at, act) in acts.into_iter().enumerate() {
        let holder = wait_for_holder(plane, |holder| !holder.is_empty())?;
        let leader = wait_for("a replica that leads", BOUND, || Ok(replicas.iter().position(Replica::leads)))?;
        create_pods(plane, &format!("{act:?}").to_lowercase(), PODS)?;
        // Whoever it is binds them: the first of these is bound.
        wait_until_bound(plane, &mut replicas[leader].process, PODS * at + 1)?;
        let mut replica = replicas.remove(leader);
        let left = PODS * (at + 1) - count_bound(plane)?;
        let began = now();
        replica.suffer(act)?;
        let (renewed, took) = takeover(plane, &holder)?;
        println!("{act:?} with {left} pods left: another replica became leader {took:.1?} after the last renewal");
        if took > TAKEOVER {
            return Err(format!("{act:?}: another one took over only after {took:?}").into());
        }
        if act == Act::Stop {
            // It finds out that its term is over before it writes anything.
            replica.process.signal("CONT")?;
        }
        replica.check_end(act)?;
        let late = replica.writes_after(renewed + LEASE_DURATION + ON_ITS_WAY);
        if late.len() > if act == Act::Stop { IN_FLIGHT } else { 0 } {
            return Err(format!("{act:?}: it wrote when its lease had run out: {late:#?}").into());
        }
        match act {
            Act::Stop => println!("{} writes were in flight when the leader was stopped", late.len()),
            Act::Mute => {
                println!("{} writes arrived whose responses were lost", replica.writes_after(began).len());
            }
            Act::Kill | Act::End | Act::Cut => {}
        }
        replicas.push(Replica::start(plane, &format!("replica-{act:?}"))?);
    }
    let leader = wait_for("a replica that leads", BOUND, || Ok(replicas.iter().position(Replica::leads)))?;
    let process = &mut replicas[leader].process;
    wait_until_bound(plane, process, PODS * acts.len())?;
    scene.check(process)?;
    // Silent connections would keep the API server from ending.
    drop(replicas);
    scene.close()
}

/// Waits until somebody else than this one has the lease. Gives when it was renewed last, and how long after that this was.
fn takeover(plane: &ControlPlane, holder: &str) -> Result<(Instant, Duration), String> {
    let (mut version, mut renewed) = (String::new(), now());
    wait_for("another leader", BOUND, || {
        let lease = lease(plane)?;
        let spec = &lease["spec"];
        match spec["holderIdentity"].as_str().unwrap_or_default() {
            same if same == holder => {
                let renewal = spec["renewTime"].to_string();
                if renewal != version {
                    (version, renewed) = (renewal, now());
                }
                Ok(None)
            }
            "" => Ok(None),
            _ => Ok(Some((renewed, renewed.elapsed()))),
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "what is measured is the time that other processes take")]
fn now() -> Instant {
    Instant::now()
}
