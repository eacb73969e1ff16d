//! New workloads: their numbers, their selectors, and the pods that they describe.
//!
//! Follows `pkg/apis/apps/validation/validation.go`, `pkg/apis/batch/validation/validation.go` and
//! `pkg/apis/core/validation/validation.go @v1.36.3`. Rules on roll-outs, histories and deadlines, none of which a scheduler
//! sees, are not here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::metadata::labels;
use super::{Errors, Path, pod, scheduling, text};
use crate::apiserver::field_error::FieldError;
use crate::apiserver::kinds::{
    CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, Kind, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS,
};
use crate::apiserver::meta;
use crate::k8s::{Selector, StringMap};

/// `pkg/apis/batch/validation/validation.go: maxParallelismForIndexedJob @v1.36.3`.
const MAX_INDEXED_PARALLELISM: i64 = 100_000;

/// What a cron job's name leaves of 63 characters for the time that is added to it.
/// `pkg/apis/batch/validation/validation.go#ValidateCronJobCreate @v1.36.3`.
const MAX_CRON_JOB_NAME: usize = 52;

/// What is wrong with a new workload; nothing with an object of another kind.
pub(super) fn on_create(kind: &Kind, value: &Value, errors: &mut Errors) {
    let path = Path::Root("spec");
    let spec = &value["spec"];
    let is = |other: &Kind| kind.slot == other.slot;
    if is(&REPLICATION_CONTROLLERS) {
        replication_controller(spec, path, errors);
    } else if is(&DEPLOYMENTS) || is(&REPLICA_SETS) {
        non_negative(spec, "replicas", path, errors);
        selected(spec, path, Some("deployment"), errors);
        always_restarted(spec, path, errors);
    } else if is(&STATEFUL_SETS) {
        non_negative(spec, "replicas", path, errors);
        let ordinals = path.child("ordinals");
        non_negative(&spec["ordinals"], "start", ordinals, errors);
        selected(spec, path, Some("statefulset"), errors);
        always_restarted(spec, path, errors);
    } else if is(&DAEMON_SETS) {
        selected(spec, path, Some("daemonset"), errors);
        always_restarted(spec, path, errors);
    } else if is(&JOBS) {
        job(spec, path, errors);
        selected(spec, path, None, errors);
    } else if is(&CRON_JOBS) {
        cron_job(value, path, errors);
    }
}

/// Follows `#ValidateReplicationControllerSpec`.
fn replication_controller(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    non_negative(spec, "replicas", path, errors);
    if meta::is_empty(&spec["selector"]) {
        errors.push(FieldError::required(path.child("selector"), ""));
    }
    if spec["template"].is_null() {
        errors.push(FieldError::required(path.child("template"), ""));
        return;
    }
    let wanted = StringMap::deserialize(&spec["selector"]).unwrap_or_default();
    let selector = LabelSelector { match_labels: Some(wanted), ..LabelSelector::default() };
    matches_template(&selector, spec, path, errors);
    always_restarted(spec, path, errors);
}

/// The selector is there, can be read, and selects the pods that the workload describes. `kind` is how the message about
/// an empty one calls the workload, or none if it may be empty.
fn selected(spec: &Value, path: Path<'_>, kind: Option<&str>, errors: &mut Errors) {
    let (value, here) = (&spec["selector"], path.child("selector"));
    if value.is_null() {
        errors.push(FieldError::required(here, ""));
        return;
    }
    scheduling::label_selector(value, here, errors);
    if let Some(kind) = kind
        && meta::is_empty(&value["matchLabels"])
        && meta::is_empty(&value["matchExpressions"])
    {
        errors.push(FieldError::invalid(here, value, format!("empty selector is invalid for {kind}")));
    }
    if let Ok(selector) = LabelSelector::deserialize(value) {
        matches_template(&selector, spec, path, errors);
    }
}

fn matches_template(selector: &LabelSelector, spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let template = path.child("template");
    let metadata = template.child("metadata");
    let value = &spec["template"]["metadata"]["labels"];
    let own = StringMap::deserialize(value).unwrap_or_default();
    if Selector::from_label_selector(Some(selector)).is_ok_and(|selector| !selector.matches(&own)) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(metadata.child("labels"), &json!(own), detail));
    }
}

/// Follows `#ValidatePodTemplateSpec`.
fn template(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let (value, path) = (&spec["template"], path.child("template"));
    labels(&value["metadata"]["labels"], path.child("labels"), errors);
    pod::spec(&value["spec"], path.child("spec"), errors);
    if !meta::is_empty(&value["spec"]["ephemeralContainers"]) {
        let spec = path.child("spec");
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(spec.child("ephemeralContainers"), detail));
    }
}

/// Follows `#ValidatePodTemplateSpecForReplicaSet`.
fn always_restarted(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    template(spec, path, errors);
    let (policy, path) = (text(&spec["template"]["spec"], "restartPolicy"), path.child("template"));
    let path = path.child("spec");
    if policy != "Always" {
        errors.push(FieldError::not_supported(path.child("restartPolicy"), &json!(policy), &["Always"]));
    }
}

/// Follows `#validateJobSpec`.
fn job(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    for key in ["parallelism", "completions"] {
        non_negative(spec, key, path, errors);
    }
    let mode = text(spec, "completionMode");
    if !matches!(mode, "NonIndexed" | "Indexed" | "") {
        let known = ["NonIndexed", "Indexed"];
        errors.push(FieldError::not_supported(path.child("completionMode"), &json!(mode), &known));
    }
    if mode == "Indexed" {
        if spec["completions"].is_null() {
            errors.push(FieldError::required(path.child("completions"), "when completion mode is Indexed"));
        }
        if spec["parallelism"].as_i64().is_some_and(|number| number > MAX_INDEXED_PARALLELISM) {
            let detail =
                format!("must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed");
            errors.push(FieldError::invalid(path.child("parallelism"), &spec["parallelism"], detail));
        }
    }
    template(spec, path, errors);
    let policy = text(&spec["template"]["spec"], "restartPolicy");
    let template = path.child("template");
    let pod = template.child("spec");
    match policy {
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            let detail = r#"valid values: "OnFailure", "Never""#;
            errors.push(FieldError::required(pod.child("restartPolicy"), detail));
        }
        _ => {
            let known = ["Never", "OnFailure"];
            errors.push(FieldError::not_supported(pod.child("restartPolicy"), &json!(policy), &known));
        }
    }
}

/// Follows `#ValidateCronJobCreate`. What the schedule says is not read: a simulation takes the next time to be due.
fn cron_job(value: &Value, path: Path<'_>, errors: &mut Errors) {
    let spec = &value["spec"];
    if text(spec, "schedule").is_empty() {
        errors.push(FieldError::required(path.child("schedule"), ""));
    }
    let job_template = path.child("jobTemplate");
    job(&spec["jobTemplate"]["spec"], job_template.child("spec"), errors);
    let name = meta::text(value, "name");
    if name.len() > MAX_CRON_JOB_NAME {
        let detail = format!("must be no more than {MAX_CRON_JOB_NAME} characters");
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
}

/// Follows `#ValidateNonnegativeField`.
pub(super) fn non_negative(owner: &Value, key: &str, path: Path<'_>, errors: &mut Errors) {
    if owner[key].as_i64().is_some_and(|number| number < 0) {
        errors.push(FieldError::invalid(path.child(key), &owner[key], "must be greater than or equal to 0"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::defaulting;

    fn check(kind: &'static Kind, spec: &Value, expected: &[&str]) {
        let mut value = json!({"metadata": {"name": "w"}, "spec": spec});
        defaulting::apply(kind, &mut value, None);
        let mut errors = Errors::new();
        on_create(kind, &value, &mut errors);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{value}");
    }

    fn spec(selector: &Value, restart: &str) -> Value {
        json!({
            "selector": selector,
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]},
            },
        })
    }

    #[test]
    fn selectors_select_the_pods_that_are_described() {
        for kind in [&DEPLOYMENTS, &REPLICA_SETS, &STATEFUL_SETS, &DAEMON_SETS] {
            check(kind, &spec(&json!({"matchLabels": {"a": "b"}}), "Always"), &[]);
            check(kind, &spec(&Value::Null, "Always"), &["spec.selector: Required value"]);
            check(
                kind,
                &spec(&json!({"matchLabels": {"a": "c"}}), "Always"),
                &[
                    r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
                ],
            );
            check(
                kind,
                &spec(&json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}), "Always"),
                &[r#"spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#],
            );
            check(
                kind,
                &spec(&json!({"matchLabels": {"a": "b"}}), "Never"),
                &[r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#],
            );
        }
        check(
            &STATEFUL_SETS,
            &spec(&json!({}), "Always"),
            &["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
        );
        check(&REPLICATION_CONTROLLERS, &spec(&json!({"a": "b"}), "Always"), &[]);
        check(
            &REPLICATION_CONTROLLERS,
            &spec(&json!({"a": "c"}), "Always"),
            &[
                r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#,
            ],
        );
    }

    #[test]
    fn numbers_are_not_negative() {
        let negative = "Invalid value: -1: must be greater than or equal to 0";
        let mut set = spec(&json!({"matchLabels": {"a": "b"}}), "Always");
        set["replicas"] = json!(-1);
        set["ordinals"] = json!({"start": -1});
        check(
            &STATEFUL_SETS,
            &set,
            &[&format!("spec.replicas: {negative}"), &format!("spec.ordinals.start: {negative}")],
        );
        let mut job = spec(&json!({}), "Never");
        job["parallelism"] = json!(-1);
        job["completionMode"] = json!("Indexed");
        check(
            &JOBS,
            &job,
            &[
                &format!("spec.parallelism: {negative}"),
                "spec.completions: Required value: when completion mode is Indexed",
            ],
        );
    }

    #[test]
    fn jobs_end() {
        let ends = r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#;
        check(&JOBS, &spec(&json!({}), "Always"), &[ends]);
        check(&JOBS, &spec(&json!({}), "OnFailure"), &[]);
        check(
            &CRON_JOBS,
            &json!({"jobTemplate": {"spec": spec(&Value::Null, "Never")}}),
            &["spec.schedule: Required value"],
        );
    }

    #[test]
    fn what_is_wrong_with_the_pods_is_named_in_the_template() {
        check(
            &DEPLOYMENTS,
            &json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}),
            &["spec.template.spec.containers: Required value"],
        );
    }
}
