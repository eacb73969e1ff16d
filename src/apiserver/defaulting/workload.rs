//! Defaults of workloads, including jobs and cron jobs.
//!
//! Follows `pkg/apis/apps/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go` and `pkg/apis/core/v1/defaults.go @v1.36.3`.

use serde_json::{Map, Value, json};

use super::{default, default_absent, pod, storage};
use crate::apiserver::meta;

type Object = Map<String, Value>;

fn template(spec: &mut Object) {
    let template = spec.entry("template").or_insert_with(|| json!({}));
    pod::spec(meta::child(template, "spec"));
}

pub(super) fn replication_controller(controller: &mut Value) {
    let labels = controller["spec"]["template"]["metadata"]["labels"].clone();
    let spec = meta::child(controller, "spec");
    // Unlike other workloads, a replication controller may lack a template.
    if spec.contains_key("template") {
        template(spec);
    }
    default_absent(spec, "replicas", 1);
    if labels.is_object() {
        default(spec, "selector", labels.clone());
        default(meta::metadata(controller), "labels", labels);
    }
}

pub(super) fn replica_set(set: &mut Value) {
    let spec = meta::child(set, "spec");
    template(spec);
    default_absent(spec, "replicas", 1);
}

pub(super) fn deployment(deployment: &mut Value) {
    let spec = meta::child(deployment, "spec");
    template(spec);
    default_absent(spec, "replicas", 1);
    default_absent(spec, "revisionHistoryLimit", 10);
    default_absent(spec, "progressDeadlineSeconds", 600);
    let strategy = spec.entry("strategy").or_insert_with(|| json!({}));
    rolling(strategy, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
}

pub(super) fn stateful_set(set: &mut Value) {
    let spec = meta::child(set, "spec");
    template(spec);
    default_absent(spec, "replicas", 1);
    default_absent(spec, "revisionHistoryLimit", 10);
    default(spec, "podManagementPolicy", "OrderedReady");
    let strategy = spec.entry("updateStrategy").or_insert_with(|| json!({}));
    rolling(strategy, &[("partition", json!(0))]);
    let retention = spec.entry("persistentVolumeClaimRetentionPolicy").or_insert_with(|| json!({}));
    if let Some(retention) = retention.as_object_mut() {
        default(retention, "whenDeleted", "Retain");
        default(retention, "whenScaled", "Retain");
    }
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        storage::claim(claim);
        if let Some(claim) = claim.as_object_mut() {
            default(claim, "apiVersion", "v1");
            default(claim, "kind", "PersistentVolumeClaim");
        }
    }
}

/// Fills in the number of unavailable pods of a stateful set's rolling update.
pub(super) fn max_unavailable(set: &mut Value) {
    rolling(&mut set["spec"]["updateStrategy"], &[("maxUnavailable", json!(1))]);
}

pub(super) fn daemon_set(set: &mut Value) {
    let spec = meta::child(set, "spec");
    template(spec);
    default_absent(spec, "revisionHistoryLimit", 10);
    let strategy = spec.entry("updateStrategy").or_insert_with(|| json!({}));
    rolling(strategy, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    // Upstream keeps the removed field `templateGeneration` as an annotation.
    let annotations = meta::metadata(set).entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        default_absent(annotations, "deprecated.daemonset.template.generation", "1");
    }
}

/// Defaults a strategy's type to `RollingUpdate`, and fills in the parameters of a rolling update.
fn rolling(strategy: &mut Value, parameters: &[(&str, Value)]) {
    let Some(strategy) = strategy.as_object_mut() else { return };
    default(strategy, "type", "RollingUpdate");
    if strategy.get("type") != Some(&json!("RollingUpdate")) {
        return;
    }
    let update = strategy.entry("rollingUpdate").or_insert_with(|| json!({}));
    if let Some(update) = update.as_object_mut() {
        for (key, value) in parameters {
            default_absent(update, key, value.clone());
        }
    }
}

pub(super) fn job(job: &mut Value) {
    job_spec(meta::child(job, "spec"));
    let rules = job["spec"].get_mut("podFailurePolicy").and_then(|policy| policy.get_mut("rules")?.as_array_mut());
    for rule in rules.into_iter().flatten() {
        let conditions = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            default(condition, "status", "True");
        }
    }
}

fn job_spec(spec: &mut Object) {
    template(spec);
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        default_absent(spec, "completions", 1);
    }
    default_absent(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    default_absent(spec, "backoffLimit", limit);
    default_absent(spec, "completionMode", "NonIndexed");
    default_absent(spec, "suspend", false);
    default_absent(spec, "manualSelector", false);
    let policy = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    default_absent(spec, "podReplacementPolicy", policy);
}

/// Generates a new job's selector and the labels of its pod template, unless `manualSelector` is true.
/// Follows `pkg/registry/batch/job/strategy.go#generateSelector @v1.36.3`.
pub(super) fn job_selector(job: &mut Value) {
    let (name, uid) = (meta::text(job, "name").to_owned(), meta::text(job, "uid").to_owned());
    let spec = meta::child(job, "spec");
    if spec.get("manualSelector") == Some(&json!(true)) {
        return labels_of_template(job);
    }
    let template = spec.entry("template").or_insert_with(|| json!({}));
    let labels = meta::metadata(template).entry("labels").or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            default_absent(labels, key, value.as_str());
        }
    }
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    if let Some(selector) = selector.as_object_mut() {
        let labels = selector.entry("matchLabels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            default_absent(labels, "batch.kubernetes.io/controller-uid", uid.as_str());
        }
    }
    labels_of_template(job);
}

/// Copies the labels of the pod template to a job without labels.
/// Follows `pkg/apis/batch/v1/defaults.go#SetDefaults_Job @v1.36.3`.
fn labels_of_template(job: &mut Value) {
    let labels = job["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        default(meta::metadata(job), "labels", labels);
    }
}

pub(super) fn cron_job(cron_job: &mut Value) {
    let spec = meta::child(cron_job, "spec");
    default(spec, "concurrencyPolicy", "Allow");
    default_absent(spec, "suspend", false);
    default_absent(spec, "successfulJobsHistoryLimit", 3);
    default_absent(spec, "failedJobsHistoryLimit", 1);
    let job = spec.entry("jobTemplate").or_insert_with(|| json!({}));
    template(meta::child(job, "spec"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_selector_defaults_to_its_uid() {
        let mut value = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"spec": {}}}});
        job(&mut value);
        job_selector(&mut value);
        assert_eq!(value["spec"]["selector"]["matchLabels"], json!({"batch.kubernetes.io/controller-uid": "u"}));
        assert_eq!(value["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
        assert_eq!((&value["spec"]["completions"], &value["spec"]["parallelism"]), (&json!(1), &json!(1)));
    }

    #[test]
    fn deployment_strategy_defaults_to_rolling_update() {
        let mut value = json!({"spec": {"template": {}}});
        deployment(&mut value);
        assert_eq!(
            value["spec"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}})
        );
        assert_eq!(value["spec"]["template"]["spec"]["restartPolicy"], "Always");
        let mut value = json!({"spec": {"strategy": {"type": "Recreate"}}});
        deployment(&mut value);
        assert_eq!(value["spec"]["strategy"], json!({"type": "Recreate"}));
    }
}
