//! Tests of lists: versions, pages, selectors.

use http::StatusCode;
use serde_json::{Value, json};

use super::super::kinds;
use super::{World, node, pod, with};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn world_with(pods: &[&str]) -> World {
    let world = World::new();
    for name in pods {
        world.create(pod(name));
    }
    world
}

#[tokio::test]
async fn list_is_sorted_and_items_have_no_type() {
    let world = world_with(&["b", "c", "a"]);
    let (code, list) = world.get("/api/v1/pods").await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
    assert_eq!(list["metadata"], json!({"resourceVersion": world.server.version().to_string()}));
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!((&list["items"][0]["kind"], &list["items"][0]["apiVersion"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn pages_of_a_list_share_one_version() {
    let world = world_with(&["a", "b", "c", "d", "e"]);
    let version = world.server.version();
    let (_, first) = world.get("/api/v1/pods?limit=2").await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    world.create(pod("bb"));
    world.server.delete(&kinds::PODS, "default", "d", &super::super::DeleteOptions::default()).unwrap();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = world.get(&format!("/api/v1/pods?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], version.to_string());
    let token = second["metadata"]["continue"].as_str().unwrap();
    let (_, third) = world.get(&format!("/api/v1/pods?limit=2&continue={token}")).await;
    assert_eq!((names(&third), &third["metadata"]["continue"]), (vec!["e"], &Value::Null));

    world.server.faults().compact(&kinds::PODS);
    let (code, expired) = world.get(&format!("/api/v1/pods?limit=2&continue={token}")).await;
    assert_eq!((code.as_u16(), expired["reason"].as_str().unwrap()), (410, "Expired"));
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = world.get(&format!("/api/v1/pods?limit=2&continue={token}")).await;
    assert_eq!(names(&rest), ["e"]);
    let (code, status) = world.get("/api/v1/pods?limit=2&continue=nonsense").await;
    assert_eq!((code.as_u16(), status["message"].as_str().unwrap()), (400, "invalid continue token: nonsense"));
}

#[tokio::test]
async fn list_honours_resource_version_and_match() {
    let world = world_with(&["a"]);
    let then = world.server.version();
    world.create(pod("b"));
    let (_, any) = world.get("/api/v1/pods?resourceVersion=0&limit=1").await;
    assert_eq!(names(&any), ["a", "b"], "the cache has no pages");
    let (_, exact) = world.get(&format!("/api/v1/pods?resourceVersion={then}&resourceVersionMatch=Exact")).await;
    assert_eq!(names(&exact), ["a"]);
    assert_eq!(exact["metadata"]["resourceVersion"], then.to_string());
    let (_, newer) = world.get(&format!("/api/v1/pods?resourceVersion={then}")).await;
    assert_eq!(names(&newer), ["a", "b"]);
    world.server.faults().compact(&kinds::PODS);
    let (code, status) = world.get(&format!("/api/v1/pods?resourceVersion={then}&resourceVersionMatch=Exact")).await;
    assert_eq!(code, 410);
    assert_eq!(status["message"], "The resourceVersion for the provided list is too old.");
    for (query, code, text) in [
        (
            "resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "sendInitialEvents=true",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "resourceVersion=abc",
            400,
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
    ] {
        let (got, status) = world.get(&format!("/api/v1/pods?{query}")).await;
        assert_eq!((got.as_u16(), status["message"].as_str().unwrap()), (code, text));
    }
}

#[tokio::test]
async fn list_at_a_future_version_times_out() {
    let world = world_with(&["a"]);
    let (version, current) = (world.server.version() + 1, world.server.version());
    let url = format!("/api/v1/pods?resourceVersion={version}");
    let waiting = world.get(&url);
    let passing = async {
        assert_eq!((world.server.pending(), world.server.held()), (0, 1));
        assert!(world.server.next_deadline().is_some());
        world.pass(3);
    };
    let ((code, status), ()) = tokio::join!(biased; waiting, passing);
    assert_eq!((code.as_u16(), status["reason"].as_str().unwrap()), (504, "Timeout"));
    assert_eq!(status["message"], format!("Timeout: Too large resource version: {version}, current: {current}"));
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
    let ((code, list), ()) = tokio::join!(biased; world.get(&url), async { drop(world.create(pod("b"))) });
    assert_eq!((code.as_u16(), names(&list)), (200, vec!["a", "b"]));
    assert_eq!(world.server.held(), 0);
}

#[tokio::test]
async fn list_selectors_filter_objects() {
    let world = World::new();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "")] {
        let labels = if label.is_empty() { json!({}) } else { json!({"l": label}) };
        world.create(with(pod(name), json!({"metadata": {"labels": labels}})));
    }
    world.create(node("n"));
    for (query, expected) in [
        ("labelSelector=l%3Dx", &["a"][..]),
        ("labelSelector=l!%3Dx", &["b", "c"]),
        ("labelSelector=l", &["a", "b"]),
        ("labelSelector=!l", &["c"]),
        ("labelSelector=l+in+(x,y),l+notin+(x)", &["b"]),
        ("fieldSelector=metadata.name%3Db", &["b"]),
        ("fieldSelector=spec.nodeName%3Dn", &[]),
        ("fieldSelector=spec.schedulerName!%3Dx,metadata.namespace%3D%3Ddefault", &["a", "b", "c"]),
    ] {
        let (code, list) = world.get(&format!("/api/v1/pods?{query}")).await;
        assert_eq!((code, names(&list)), (StatusCode::OK, expected.to_vec()), "{query}");
    }
    assert_eq!(names(&world.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse").await.1), ["n"]);
    for (path, text) in [
        ("pods?fieldSelector=spec.foo%3D1", "field label not supported: spec.foo"),
        (
            "configmaps?fieldSelector=x%3D1",
            "\"x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("pods?labelSelector=a+in+b", "unable to parse requirement: found 'b' expected: '('"),
    ] {
        let (code, status) = world.get(&format!("/api/v1/{path}")).await;
        assert_eq!((code.as_u16(), status["message"].as_str().unwrap()), (400, text));
    }
    let (_, gone) = world.remove("/api/v1/namespaces/default/pods?labelSelector=l", &Value::Null).await;
    assert_eq!(names(&gone), ["a", "b"]);
    assert_eq!(names(&world.get("/api/v1/pods").await.1), ["c"]);
}

#[tokio::test]
async fn unknown_paths_and_objects_get_404() {
    let world = World::new();
    assert_eq!(world.get("/apis/none.k8s.io/v1/things").await, (StatusCode::NOT_FOUND, json!("404 page not found\n")));
    let (code, status) = world.get("/apis/apps/v1/things").await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (404, "the server could not find the requested resource")
    );
    let (code, status) = world.patch("/api/v1/pods", &json!({})).await;
    assert_eq!((code.as_u16(), status["reason"].as_str().unwrap()), (405, "MethodNotAllowed"));
    let (code, _) = world.get("/apis/events.k8s.io/v1").await;
    assert_eq!(code, 200);
    assert_eq!(world.get("/version").await.1["gitVersion"], "v1.36.3");
}
