//! Requests that fail and connections that do, at random, in the middle of 1,000 bindings.

use std::time::Duration;

use kube_scheduler::clock::Rng;
use libtest_mimic::Failed;
use serde_json::json;

use super::proxy::{Asked, Fault, Proxy};
use super::relay::Relay;
use super::silence::Silence;
use super::{PODS, Scene, count_pods, create_pods, start_with, wait_until_bound};
use crate::parity::clusters::from_environment;
use crate::support::cluster::wait_for;

/// Pods come in so many waves, and something else happens to the connections in each.
const WAVES: usize = 5;

/// How long it may take until connections are there that something can happen to.
const HAPPENED: Duration = Duration::from_secs(30);

/// Pings that notice a silent connection in 3 s instead of 45, so that there is time for several.
const IMPATIENT: &[(&str, &str)] = &[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2"), ("HTTP2_PING_TIMEOUT_SECONDS", "1")];

/// Requests are answered with errors by somebody in between, or done and then answered with errors, or cut off; answers come
/// late and slowly; watches end; connections are cut, go silent, carry little, and new ones are never spoken on. Then all of
/// that ends. Meanwhile two schedulers with client-go's own patience wait on silent connections.
pub(crate) fn survives_faulty_connections() -> Result<(), Failed> {
    let seed = from_environment("KS_SEED")?.unwrap_or(0);
    let scene = Scene::open()?;
    let plane = &scene.plane;
    let silence = Silence::begin(plane)?;
    let proxy = Proxy::start(plane)?;
    let relay = Relay::start(plane, proxy.address)?;
    proxy.play(at_random(seed));
    let kubeconfig = plane.kubeconfig_through("faulty", relay.address)?;
    let more = json!({"clientConnection": {"kubeconfig": kubeconfig}});
    let mut scheduler = start_with(plane, "scheduler", more, IMPATIENT)?;
    let others = count_pods(plane)?;
    for wave in 0..WAVES {
        create_pods(plane, &format!("wave-{wave}"), PODS / WAVES)?;
        wait_until_bound(plane, &mut scheduler, PODS / WAVES * wave + PODS / WAVES / 4)?;
        let happen = |kind: &str, order: &dyn Fn()| {
            let before = relay.counts()[kind];
            order();
            wait_for(&format!("connections to be {kind}"), HAPPENED, || {
                Ok((relay.counts()[kind] > before).then_some(()))
            })
        };
        match wave {
            0 => happen("cut", &|| relay.cut())?,
            1 | 3 => happen("held", &|| relay.hold())?,
            2 => happen("slow", &|| relay.be_slow(true))?,
            _ => {
                relay.be_deaf(true);
                happen("deaf", &|| relay.cut())?;
                relay.be_deaf(false);
            }
        }
        if wave == 3 {
            relay.be_slow(false);
        }
    }
    proxy.calm();
    silence.end(plane)?;
    wait_until_bound(plane, &mut scheduler, PODS + others)?;
    scene.check(&mut scheduler)?;
    let happened = [proxy.counts(), relay.counts()];
    println!("seed {seed}: {happened:?}");
    if let Some((kind, _)) = happened.iter().flatten().find(|(_, count)| **count == 0) {
        return Err(format!("seed {seed}: nothing was ever {kind:?}").into());
    }
    // Silent connections would keep the API server from ending.
    drop((scheduler, relay));
    scene.close()
}

/// Two of five requests fail in some way.
fn at_random(seed: u64) -> impl FnMut(&Asked) -> Fault + Send + 'static {
    let mut rng = Rng::from_seed(seed);
    move |asked| {
        if !rng.chance(2, 5) {
            return Fault::None;
        }
        let after = Duration::from_millis(rng.below(3000));
        let kinds: &[Fault] = if asked.is_watch {
            &[
                Fault::EndOfWatch { after, is_clean: false },
                Fault::EndOfWatch { after, is_clean: true },
                Fault::Late(after),
                Fault::Busy { wait: rng.chance(1, 2) },
                Fault::Code(503),
                Fault::Cut { passed: false },
            ]
        } else {
            &[
                Fault::Busy { wait: true },
                Fault::Busy { wait: false },
                Fault::Code(500),
                Fault::Code(502),
                Fault::Code(503),
                Fault::Code(504),
                Fault::Instead(500),
                Fault::Instead(504),
                Fault::InsteadBusy,
                Fault::Cut { passed: false },
                Fault::Cut { passed: true },
                Fault::Late(after),
                Fault::Slow,
            ]
        };
        kinds[rng.index(kinds.len())]
    }
}
