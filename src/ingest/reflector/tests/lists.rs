//! Tests with servers that do not support watch-lists.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::{World, run, shorten};
use crate::apiserver::{Fault, kinds};

#[test]
fn a_server_that_cannot_begin_a_watch_with_all_objects_is_listed() {
    run(async {
        let world = World::new();
        world.create("a");
        world.inject(|request| request.starts_with("watch-list").then_some(Fault::Status(422, None)));
        let _task = world.start(world.sink.clone());
        let listed = world.server.version();
        let heard = world.heard().await;
        World::expect(&heard, "+default/a", &format!("watch-list, list 500 0, watch {listed}"));
        assert!(world.synced.load(Ordering::Relaxed));
        world.create("b");
        World::expect(&world.heard().await, "+default/b", "");
    });
}

#[test]
fn a_later_list_is_no_older_and_not_in_pages() {
    run(async {
        let world = World::new();
        world.create("a");
        world.inject(|request| request.starts_with("watch-list").then_some(Fault::Status(422, None)));
        let _task = world.start(world.sink.clone());
        world.heard().await;
        let last = world.server.version();
        world.server.faults().drop_watches(&kinds::PODS);
        world.create("b");
        world.server.faults().compact(&kinds::PODS);
        world.settle().await;
        world.requests.lock().expect("no test panics under it").clear();
        world.pass(2).await;
        let newest = world.server.version();
        let requests = format!("watch-list {last}, list {last}, watch {newest}");
        World::expect(&world.heard().await, "+default/b", &requests);
    });
}

/// Checks the requests for 601 pods from a server that has forgotten the versions of the requests in `gone`. All pods are
/// delivered, and a watch follows.
fn check_pages(gone: &'static [&'static str], requests: &str) {
    run(async {
        let world = World::new();
        for number in 0..601 {
            world.create(&format!("p{number:03}"));
        }
        world.inject(|request| {
            let code = if gone.contains(&request) { 410 } else { 422 };
            (code == 410 || request.starts_with("watch-list")).then_some(Fault::Status(code, None))
        });
        let _task = world.start(world.sink.clone());
        let (changes, asked) = world.heard().await;
        assert_eq!(changes.split(", ").count(), 601);
        assert_eq!(asked, format!("{requests}, watch {}", world.server.version()));
    });
}

#[test]
fn many_objects_come_in_pages() {
    // Without a watch cache, the newest state is listed in pages.
    check_pages(&["list 500 0"], "watch-list, list 500 0, list 500, list 500 continued");
}

#[test]
fn pages_that_are_forgotten_meanwhile_are_read_in_one() {
    let gone = &["list 500 0", "list 500 continued"];
    check_pages(gone, "watch-list, list 500 0, list 500, list 500 continued, list");
}

/// A server without a watch cache returns pages even if any version is accepted. Later lists ask for pages too.
#[test]
fn a_server_that_always_answers_in_pages() {
    run(async {
        let world = World::new();
        let requests = world.requests.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let short = shorten(&request.into_parts().0);
            let meta = if short.ends_with("continued") {
                json!({"resourceVersion": "7"})
            } else {
                json!({"resourceVersion": "7", "continue": "more"})
            };
            let (code, body) = match &short {
                short if short.starts_with("watch-list") => (422, String::new()),
                short if short.starts_with("watch") => (200, String::new()),
                _ => (200, json!({"metadata": meta, "items": []}).to_string()),
            };
            requests.lock().expect("no test panics under it").push(short);
            let response = http::Response::builder().status(code).body(kube::client::Body::from(body.into_bytes()));
            futures::future::ready(Ok::<_, std::convert::Infallible>(response.expect("it is a response")))
        });
        let _task = world.start_with(kube::Client::new(service, "default"), world.sink.clone());
        let pages = "list 500 0, list 500 continued";
        World::expect(&world.heard().await, "", &format!("watch-list, {pages}, watch 7"));
        // The watch ended at once.
        world.pass(2).await;
        World::expect(&world.heard().await, "", "watch-list 7, list 500 7, list 500 continued, watch 7");
    });
}
