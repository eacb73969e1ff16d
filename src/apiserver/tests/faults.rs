//! Tests of injected faults: each fault affects only the requests that it is injected into.

use http::Method;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::super::{Fault, Gate, kinds};
use super::{PODS, World, pod};

fn typed(name: &str) -> Pod {
    serde_json::from_value(pod(name)).unwrap()
}

#[tokio::test]
async fn injected_status_has_retry_after() {
    let world = World::new();
    world.server.faults().set(|parts| (parts.method == Method::POST).then_some(Fault::Status(429, Some(2))));
    let response = world.open(Method::POST, PODS, "application/json", &pod("a").to_string()).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "2");
    drop(response);
    assert_eq!(world.get(PODS).await.1["items"], json!([]));
    world.server.faults().clear();
    assert_eq!(world.post(PODS, &pod("a")).await.0, 201);
}

#[tokio::test]
async fn connection_drops_before_or_after_the_commit() {
    let world = World::new();
    let api: Api<Pod> = Api::namespaced(world.server.client(), "default");
    world.server.faults().set(|_| Some(Fault::DropConnectionBeforeReply));
    assert!(matches!(api.create(&PostParams::default(), &typed("a")).await, Err(kube::Error::Service(_))));
    assert!(world.server.get(&kinds::PODS, "default", "a").is_none());
    world.server.faults().set(|_| Some(Fault::DropConnectionAfterCommit));
    assert!(api.create(&PostParams::default(), &typed("a")).await.is_err());
    assert!(world.server.get(&kinds::PODS, "default", "a").is_some());
    assert_eq!(world.server.pending(), 0);
}

#[tokio::test]
async fn gate_delays_requests() {
    let world = World::new();
    let gate = Gate::new();
    let held = gate.clone();
    world.server.faults().set(move |_| Some(Fault::Delay(held.clone())));
    let opening = async {
        assert_eq!((world.server.pending(), world.server.held()), (0, 1));
        assert!(world.server.get(&kinds::PODS, "default", "a").is_none());
        gate.open();
    };
    let body = pod("a");
    let ((code, _), ()) = tokio::join!(biased; world.post(PODS, &body), opening);
    assert_eq!((code.as_u16(), world.server.held()), (201, 0));
}

#[tokio::test]
async fn injected_drop_breaks_a_watch_at_once() {
    let world = World::new();
    world.create(pod("a"));
    world.server.faults().set(|_| Some(Fault::DropWatch));
    let mut body = world.open(Method::GET, "/api/v1/pods?watch=true", "", "").await.into_body();
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none());
    assert_eq!(world.server.pending(), 0);
}

#[tokio::test]
async fn injected_bytes_reach_lists_and_watches() {
    let world = World::new();
    world.create(pod("a"));
    let mut body = world.open(Method::GET, "/api/v1/pods?watch=true&resourceVersion=0", "", "").await.into_body();
    let raw = r#"{"metadata":{"name":"bad","namespace":"default"},"spec":[]}"#;
    world.server.faults().inject_raw(&kinds::PODS, "default", "bad", raw);
    let mut text = String::new();
    while world.server.pending() > 0 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&frame).unwrap());
    }
    assert!(text.ends_with(&format!("{{\"type\":\"ADDED\",\"object\":{raw}}}\n")), "{text}");
    let (_, list) = world.get("/api/v1/pods").await;
    assert_eq!(list["items"][1]["spec"], json!([]));
    let (code, _) = world.post(&format!("{PODS}/bad/binding"), &super::binding("bad", "n")).await;
    assert_eq!(code, 500);
    let (code, _) = world.patch(&format!("{PODS}/bad"), &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(code, 500);
    assert_eq!(world.remove(&format!("{PODS}/bad"), &json!(null)).await.0, 200);
    assert!(world.server.get(&kinds::PODS, "default", "bad").is_none());
}
