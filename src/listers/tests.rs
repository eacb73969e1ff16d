//! Tests of stores, indexes and observers without a cluster.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{PersistentVolume, Service};
use serde_json::json;

use super::{Change, Index, IndexBy, Kind, Lister, Listers, Observer, Store};
use crate::k8s::Pod;
use crate::testing::pod;

fn in_namespace(namespace: &str, name: &str) -> Arc<Pod> {
    pod(name).namespace(namespace).build()
}

#[test]
fn namespaces_do_not_run_into_each_other() {
    let store = Arc::new(Store::default());
    for (namespace, name) in [("a", "x"), ("a-b", "y"), ("ab", "z"), ("a", "w")] {
        store.apply(in_namespace(namespace, name));
    }
    let lister = Lister::new(store);
    let names: Vec<String> = lister.list_in("a").iter().map(|pod| pod.name().to_owned()).collect();
    assert_eq!(names, ["w", "x"]);
    assert_eq!((lister.keys(), lister.len()), (["a-b/y", "a/w", "a/x", "ab/z"].map(str::to_owned).to_vec(), 4));
}

#[test]
fn kinds_are_spelled_as_urls_and_kubectl_spell_them() {
    let check = |text: &str, path: &str, resource: &str| {
        let kind: Kind = text.parse().expect("three parts");
        assert_eq!((kind.path().as_str(), kind.resource().as_str(), kind.to_string().as_str()), (path, resource, text));
    };
    check("foos.v1beta1.a.b.c", "/apis/a.b.c/v1beta1/foos", "foos.a.b.c");
    check("replicasets.v1.apps", "/apis/apps/v1/replicasets", "replicasets.apps");
    let pods = Kind::of::<Pod>();
    assert_eq!((pods.path().as_str(), pods.resource().as_str()), ("/api/v1/pods", "pods"));
    let error = "bad.v1".parse::<Kind>().expect_err("two parts");
    assert_eq!(error.to_string(), "bad.v1 does not have the form <plural>.<version>.<group>");
}

/// Index of volumes by the name of their storage class.
struct ByClass;

impl IndexBy<PersistentVolume> for ByClass {
    type Key = String;

    fn keys(volume: &PersistentVolume) -> Vec<String> {
        volume.spec.iter().filter_map(|spec| spec.storage_class_name.clone()).collect()
    }
}

fn volume(name: &str, version: u32, class: &str) -> Arc<PersistentVolume> {
    let meta = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
    let volume = json!({"metadata": meta, "spec": {"storageClassName": class}});
    Arc::new(serde_json::from_value(volume).expect("a volume"))
}

fn names(index: &Index<PersistentVolume, ByClass>, class: &str) -> String {
    let names = index.get(class).into_iter().filter_map(|volume| volume.metadata.name.clone());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_index_follows_every_change_and_is_shared() {
    let listers = Listers::default();
    let lister = listers.ask::<PersistentVolume>().expect("not sealed");
    listers.put(volume("early", 1, "fast"));
    let index = lister.index::<ByClass>().expect("not sealed");
    let same = lister.index::<ByClass>().expect("not sealed");
    let store = listers.store::<PersistentVolume>().expect("it was asked for");
    store.apply(volume("b", 1, "fast"));
    store.apply(volume("a", 1, "slow"));
    assert_eq!((names(&index, "fast"), names(&same, "slow")), ("b early".into(), "a".into()));
    store.apply(volume("b", 2, "slow"));
    assert_eq!((names(&index, "fast"), names(&same, "slow")), ("early".into(), "a b".into()));
    store.delete(volume("a", 3, "gone"));
    store.remove("early");
    assert_eq!((names(&index, "fast"), names(&same, "slow")), (String::new(), "b".into()));
}

/// An observer that logs each change with the number of objects that its lister has at that time.
struct Log {
    volumes: Lister<PersistentVolume>,
    lines: Mutex<Vec<String>>,
}

impl Observer<PersistentVolume> for Log {
    fn changed(&self, change: &Change<PersistentVolume>) {
        let (sign, volume) = match change {
            Change::Added(new) => ("+", new),
            Change::Updated { new, .. } => ("~", new),
            Change::Deleted { last, missed: false } => ("-", last),
            Change::Deleted { last, missed: true } => ("?", last),
        };
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        self.lines.lock().expect("no test panics under it").push(format!("{sign}{name} {}", self.volumes.len()));
    }
}

#[test]
fn an_observer_sees_each_change_once_in_order_and_after_the_store_has_it() {
    let listers = Listers::default();
    let volumes = listers.ask::<PersistentVolume>().expect("not sealed");
    listers.put(volume("early", 1, "c"));
    let log = Arc::new(Log { volumes: volumes.clone(), lines: Mutex::default() });
    volumes.observe(log.clone()).expect("not sealed");
    let store = listers.store::<PersistentVolume>().expect("it was asked for");
    store.apply(volume("a", 1, "c"));
    store.apply(volume("a", 1, "c"));
    store.apply(volume("a", 2, "c"));
    let mut other = (*volume("a", 3, "c")).clone();
    other.metadata.uid = Some("other".to_owned());
    store.apply(Arc::new(other));
    store.delete(volume("a", 4, "c"));
    store.delete(volume("a", 4, "c"));
    store.remove("early");
    let lines = log.lines.lock().expect("no test panics under it").join(", ");
    assert_eq!(lines, "+early 1, +a 2, ~a 2, ?a 2, +a 2, -a 1, ?early 0");
}

#[test]
fn nothing_new_can_be_asked_for_once_watching_has_begun() {
    let listers = Listers::default();
    let volumes = listers.ask::<PersistentVolume>().expect("not sealed");
    assert!(listers.store::<Service>().is_none(), "nobody asked");
    listers.seal();
    let refused =
        |what: &str| format!("{what} was requested after watches had started; request it in the plugin's factory");
    let error = listers.ask::<Service>().expect_err("sealed").to_string();
    assert_eq!(error, refused("a lister of services.v1"));
    let foos = Kind::new("example.com", "v1", "foos");
    let error = listers.ask_dynamic(foos).expect_err("sealed").to_string();
    assert_eq!(error, refused("a lister of foos.v1.example.com"));
    let error = volumes.index::<ByClass>().expect_err("sealed").to_string();
    assert_eq!(error, refused("an index of persistentvolumes.v1"));
    let log = Arc::new(Log { volumes: volumes.clone(), lines: Mutex::default() });
    let error = volumes.observe(log).expect_err("sealed").to_string();
    assert_eq!(error, refused("an observer of persistentvolumes.v1"));
    assert!(volumes.is_empty());
    assert!(listers.ask::<PersistentVolume>().is_ok(), "the kind is watched already");
}
