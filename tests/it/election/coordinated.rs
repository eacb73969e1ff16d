//! Elections in which somebody else chooses: here the test does.

use std::time::Duration;

use kube_scheduler::apiserver::{Fault, Gate};
use kube_scheduler::client::{Call, Target};
use serde_json::{Value, json};

use super::{Candidate, LEASE, World};

impl World {
    /// A candidate that waits to be chosen.
    fn coordinated(&self, name: &str) -> Candidate {
        let candidate = self.candidate(name);
        Candidate { elector: candidate.elector.coordinated(), ..candidate }
    }

    /// Writes the lease as who chooses does.
    async fn choose(&self, holder: &str, preferred: Option<&str>) {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 5, "preferredHolder": preferred,
            "renewTime": self.time.now().wall.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "strategy": "OldestEmulationVersion",
        });
        let old = self.rest().send(&Call::Get, &LEASE).await;
        let old: Option<Value> = old.ok().map(|lease| serde_json::from_slice(&lease).expect("JSON"));
        let mut lease = old.clone().unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": LEASE.name, "namespace": LEASE.namespace},
            })
        });
        lease["spec"] = spec;
        let body = lease.to_string().into_bytes().into();
        let written = match old {
            None => self.rest().send(&Call::Post(body), &Target { name: "", ..LEASE }).await,
            Some(_) => self.rest().send(&Call::Put(body), &LEASE).await,
        };
        written.expect("the server takes it");
    }
}

#[tokio::test]
async fn nobody_takes_the_lease_and_who_is_given_it_keeps_it() {
    let world = World::new();
    let first = world.coordinated("first");
    let (term, metrics) = (first.term.clone(), first.metrics.clone());
    let task = first.run();
    world.pass(10).await;
    let none = world.rest().send(&Call::Get, &LEASE).await;
    assert!(none.expect_err("nobody has made one").is_not_found());
    world.choose("second", None).await;
    // Also one that has run out is not taken.
    world.pass(20).await;
    assert_eq!(world.lease().await["holderIdentity"], "second");
    assert!(!term.leads());

    world.choose("first", None).await;
    world.pass(30).await;
    assert!(term.lasts() && term.leads());
    let spec = world.lease().await;
    let expected = json!(["first", 15, 0, "OldestEmulationVersion"]);
    let found = ["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "strategy"].map(|key| spec[key].clone());
    assert_eq!(Value::from(found.to_vec()), expected);
    assert!(!task.is_finished() && metrics.gather().iter().any(|family| family.name().contains("slowpath")));
    task.abort();
}

#[tokio::test]
async fn a_term_is_over_when_another_one_is_preferred() {
    let world = World::new();
    world.choose("first", None).await;
    let first = world.coordinated("first");
    let term = first.term.clone();
    let task = first.run();
    world.pass(3).await;
    assert!(term.lasts());
    world.choose("first", Some("second")).await;
    world.pass(6).await;
    assert!(!task.is_finished() && term.lasts(), "the lease is its own until it has not been renewed for long enough");
    world.pass(10).await;
    let mut first = task.await.expect("it has stopped");
    assert!(!term.lasts() && first.leads() == 0);
    assert_eq!(world.lease().await["holderIdentity"], "first");
    first.elector.release().await;
    let spec = world.lease().await;
    assert_eq!((&spec["holderIdentity"], &spec["preferredHolder"]), (&"".into(), &Value::Null));
}

#[tokio::test]
async fn a_term_counts_from_the_time_that_stands_in_the_lease() {
    let world = World::new();
    world.choose("first", None).await;
    let mut first = world.coordinated("first");
    // It takes 4 s to read the lease.
    let gate = Gate::new();
    let waits = gate.clone();
    world.server.faults().set(move |_| Some(Fault::Delay(waits.clone())));
    let term = first.term.clone();
    let acquiring = tokio::spawn(async move { first.acquire().await });
    world.pass(4).await;
    gate.open();
    acquiring.await.expect("no panic");
    assert!(term.lasts());
    world.time.advance(Duration::from_secs(11));
    assert!(!term.lasts(), "by the time in the lease it has run out");
}
