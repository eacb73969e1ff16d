//! A connection on which nothing is carried any more, in either direction, in the middle of watches: how long until a
//! scheduler notices and goes on, ours and upstream's.

use std::time::{Duration, Instant};

use serde_json::json;

use super::relay::Relay;
use super::{create_pods_like, pods_there, start_upstream_with, start_with};
use crate::behaviour::binds::node_of;
use crate::support::cluster::{ControlPlane, Process, wait_for};

/// A ping goes out after 30 s of silence and is answered within 15 s, as client-go has it, or the connection is dead; then
/// there is another one.
const NOTICED: Duration = Duration::from_mins(1);

/// When the test gives up on either.
const GIVEN_UP: Duration = Duration::from_mins(2);

const STARTED: Duration = Duration::from_mins(1);

/// A scheduler of its own name, and the way from it to the API server.
struct Side {
    name: &'static str,
    relay: Relay,
    process: Process,
}

/// Both sides, whose connections carry nothing any more.
pub(super) struct Silence {
    sides: [Side; 2],
    began: Instant,
}

impl Silence {
    /// Starts both, has each bind a pod, and holds their connections.
    #[expect(clippy::disallowed_methods, reason = "real time is what it is about")]
    pub(super) fn begin(plane: &ControlPlane) -> Result<Self, String> {
        let sides = [side(plane, "upstreams")?, side(plane, "ours")?];
        for side in &sides {
            side.relay.hold();
        }
        for side in &sides {
            wait_for("connections to be held", STARTED, || Ok((side.relay.counts()["held"] > 0).then_some(())))?;
            create(plane, side.name, "after")?;
        }
        Ok(Self { sides, began: Instant::now() })
    }

    /// Waits until both have bound another pod: ours no later than it may.
    pub(super) fn end(mut self, plane: &ControlPlane) -> Result<(), String> {
        let mut took = [None; 2];
        let all = wait_for("schedulers that hear nothing", GIVEN_UP, || {
            let pods = pods_there(plane)?;
            for (at, side) in self.sides.iter_mut().enumerate() {
                if let Some(status) = side.process.ended() {
                    return Err(format!("{} ended with {status}; {}", side.name, side.process.tail()));
                }
                let name = format!("silence-{}-after-0", side.name);
                let pod = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(&name));
                if took[at].is_none() && pod.is_some_and(|pod| node_of(pod).is_some()) {
                    took[at] = Some(self.began.elapsed());
                }
            }
            Ok(took.iter().all(Option::is_some).then_some(()))
        });
        let [theirs, ours] = took.map(|took| took.map_or(f64::INFINITY, |took| took.as_secs_f64()));
        all.map_err(|error| format!("{error}: upstream's took {theirs:.1} s, ours {ours:.1} s"))?;
        println!(
            "after a connection went silent, upstream's scheduler bound a pod in {theirs:.1} s, ours in {ours:.1} s"
        );
        if ours > NOTICED.as_secs_f64() { Err("that is too long".to_owned()) } else { Ok(()) }
    }
}

fn side(plane: &ControlPlane, name: &'static str) -> Result<Side, String> {
    let relay = Relay::start(plane, plane.addresses()[1])?;
    let kubeconfig = plane.kubeconfig_through(name, relay.address)?;
    let more = json!({"clientConnection": {"kubeconfig": kubeconfig}, "profiles": [{"schedulerName": name}]});
    let process = match name {
        "ours" => start_with(plane, name, more, &[])?,
        _ => start_upstream_with(plane, name, more)?,
    };
    create(plane, name, "before")?;
    let first = format!("silence-{name}-before-0");
    // Then it has read its configuration too.
    wait_for(&format!("pod {first}"), STARTED, || {
        let pods = pods_there(plane)?;
        Ok(pods.iter().any(|pod| pod.metadata.name.as_ref() == Some(&first) && node_of(pod).is_some()).then_some(()))
    })
    .map_err(|error| format!("{error}; {}", process.tail()))?;
    Ok(Side { name, relay, process })
}

fn create(plane: &ControlPlane, name: &str, when: &str) -> Result<(), String> {
    create_pods_like(plane, &format!("silence-{name}-{when}"), 1, &json!({"spec": {"schedulerName": name}}))
}
