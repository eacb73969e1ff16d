//! Extenders over HTTP: a whole scheduler, and webhooks on loopback sockets that answer what a test wants.

mod failures;
mod flow;
mod preemption;
mod simulation;
mod tls;

use std::sync::Arc;

use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::extender::build;
use kube_scheduler::plugins::node_resources::ignore_resources;
use kube_scheduler::plugins::registry;
use kube_scheduler::scheduler::Extender;
use serde_json::{Value, json};

use crate::world::webhook::{Reply, Webhook};

/// An extender at this webhook.
fn at(webhook: &Webhook, more: Value) -> Value {
    with(json!({"urlPrefix": webhook.url()}), more)
}

fn with(mut extender: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    extender.as_object_mut().expect("an object").extend(more);
    extender
}

/// The one extender of a configuration.
fn only(extender: &Value) -> Result<Arc<dyn Extender>, String> {
    let file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    });
    let mut config = Config::parse(file.to_string().as_bytes(), &FeatureGates::default(), registry().catalog())
        .expect("a valid configuration");
    let mut built = build(&mut config, ignore_resources).map_err(|error| error.to_string())?;
    Ok(built.pop().expect("one was configured"))
}

/// The names that a filter request of either form is about.
fn names(body: &Value) -> Vec<String> {
    let of = |list: &Value, pointer: &str| -> Vec<String> {
        let list = list.as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|one| one.pointer(pointer)?.as_str().map(str::to_owned)).collect()
    };
    if body["NodeNames"].is_null() { of(&body["Nodes"]["items"], "/metadata/name") } else { of(&body["NodeNames"], "") }
}

/// Keeps nodes by name, as an extender that keeps nodes itself does.
fn keep(kept: &[&str]) -> Reply {
    Reply::Json(json!({"NodeNames": kept}))
}
