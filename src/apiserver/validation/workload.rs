//! Validation of new and updated workloads: numbers, selectors and pod templates.
//!
//! Follows `pkg/apis/apps/validation/validation.go` and `pkg/apis/core/validation/validation.go @v1.36.3`. Rollout strategies are
//! not checked, because no scheduler reads them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::field::{Errors, Path, immutable, non_negative, text};
use super::metadata::{annotations, labels};
use super::{batch, container, pod, scheduling, volume};
use crate::apimachinery::FieldError;
use crate::apiserver::kinds::{
    CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, Kind, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS,
};
use crate::apiserver::meta;
use crate::k8s::{Selector, StringMap};

const PATH: Path<'static> = Path::Root("spec");

/// Checks a new workload. Accepts objects of other kinds.
pub(super) fn on_create(kind: &Kind, value: &Value, errors: &mut Errors) {
    let spec = &value["spec"];
    if kind.slot == JOBS.slot {
        batch::on_job(spec, PATH, errors);
    } else if kind.slot == CRON_JOBS.slot {
        batch::on_cron_job(value, PATH, errors);
    } else {
        controller(kind, spec, errors);
    }
}

/// Checks an updated workload. Unlike upstream, accepts a change of the pod template of a job that is not suspended.
pub(super) fn on_update(kind: &Kind, value: &Value, before: &Value, errors: &mut Errors) {
    let (spec, old) = (&value["spec"], &before["spec"]);
    controller(kind, spec, errors);
    if [&DEPLOYMENTS, &REPLICA_SETS, &DAEMON_SETS].iter().any(|other| other.slot == kind.slot) {
        let path = PATH.child("selector");
        let before = errors.len();
        immutable(path, &spec["selector"], &old["selector"], errors);
        for error in errors.after(before) {
            error.value = selector_text(&spec["selector"]);
        }
    } else if kind.slot == CRON_JOBS.slot {
        batch::cron_job_spec(spec, PATH, errors);
    }
}

fn controller(kind: &Kind, spec: &Value, errors: &mut Errors) {
    let is = |other: &Kind| kind.slot == other.slot;
    if is(&REPLICATION_CONTROLLERS) {
        replication_controller(spec, errors);
    } else if is(&DEPLOYMENTS) {
        non_negative(spec, "replicas", PATH, errors);
        selected(spec, "deployment", "invalid label selector", "ReplicaSet", errors);
        for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
            non_negative(spec, key, PATH, errors);
        }
        let (deadline, ready) = (&spec["progressDeadlineSeconds"], spec["minReadySeconds"].as_i64().unwrap_or(0));
        if deadline.as_i64().is_some_and(|seconds| seconds <= ready) {
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(PATH.child("progressDeadlineSeconds"), deadline, detail));
        }
    } else if is(&REPLICA_SETS) {
        non_negative(spec, "replicas", PATH, errors);
        non_negative(spec, "minReadySeconds", PATH, errors);
        selected(spec, "deployment", "invalid label selector", "ReplicaSet", errors);
    } else if is(&STATEFUL_SETS) {
        stateful_set(spec, errors);
    } else if is(&DAEMON_SETS) {
        daemon_set(spec, errors);
    }
}

/// Checks the spec of a replication controller. Follows `#ValidateReplicationControllerSpec`.
fn replication_controller(spec: &Value, errors: &mut Errors) {
    non_negative(spec, "minReadySeconds", PATH, errors);
    if meta::is_empty(&spec["selector"]) {
        errors.push(FieldError::required(PATH.child("selector"), ""));
    }
    non_negative(spec, "replicas", PATH, errors);
    if spec["template"].is_null() {
        errors.push(FieldError::required(PATH.child("template"), ""));
        return;
    }
    if !meta::is_empty(&spec["selector"]) {
        matches_template(&json!({"matchLabels": spec["selector"]}), spec, PATH, errors);
    }
    always_restarted(spec, "ReplicationController", errors);
}

/// Checks the spec of a stateful set. Follows `#ValidateStatefulSetSpec`.
fn stateful_set(spec: &Value, errors: &mut Errors) {
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(PATH.child("podManagementPolicy"), &json!(policy), detail));
    }
    let retention = PATH.child("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let policy = &spec["persistentVolumeClaimRetentionPolicy"];
        container::one_of(policy, key, &["Retain", "Delete"], retention, errors);
    }
    let claims = PATH.child("volumeClaimTemplates");
    for (at, claim) in meta::list(&spec["volumeClaimTemplates"]).enumerate() {
        let path = claims.index(at);
        volume::on_claim(&claim["spec"], path.child("spec"), errors);
    }
    non_negative(spec, "replicas", PATH, errors);
    non_negative(spec, "minReadySeconds", PATH, errors);
    non_negative(&spec["ordinals"], "start", PATH.child("ordinals"), errors);
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        let complaints = crate::k8s::names::dns1123_label_errors(service);
        super::metadata::invalid_each(PATH.child("serviceName"), service, complaints, errors);
    }
    selected(spec, "statefulset", "", "StatefulSet", errors);
}

/// Checks the spec of a daemon set. Follows `#ValidateDaemonSetSpec`.
fn daemon_set(spec: &Value, errors: &mut Errors) {
    let (value, here) = (&spec["selector"], PATH.child("selector"));
    scheduling::label_selector(value, here, errors);
    matches_template(value, spec, PATH, errors);
    if !value.is_null() && is_empty_selector(value) {
        errors.push(FieldError::invalid(here, value, "empty selector is invalid for daemonset"));
    }
    always_restarted(spec, "DaemonSet", errors);
    non_negative(spec, "minReadySeconds", PATH, errors);
    non_negative(spec, "revisionHistoryLimit", PATH, errors);
}

fn is_empty_selector(selector: &Value) -> bool {
    meta::is_empty(&selector["matchLabels"]) && meta::is_empty(&selector["matchExpressions"])
}

/// Checks that a workload's selector is set, valid, not empty, and matches the labels of the pod template. Then checks the pod
/// template. Error messages use `kind` for an empty selector, `unreadable` for an invalid one, and `owner` for the template.
fn selected(spec: &Value, kind: &str, unreadable: &str, owner: &str, errors: &mut Errors) {
    let (value, here) = (&spec["selector"], PATH.child("selector"));
    if value.is_null() {
        errors.push(FieldError::required(here, ""));
    } else {
        scheduling::label_selector(value, here, errors);
        if is_empty_selector(value) {
            errors.push(FieldError::invalid(here, value, format!("empty selector is invalid for {kind}")));
        }
        let readable = LabelSelector::deserialize(value).map(|one| Selector::from_label_selector(Some(&one)));
        if !readable.is_ok_and(|selector| selector.is_ok()) {
            let mut error = FieldError::invalid(here, value, unreadable);
            error.value = selector_text(value);
            errors.push(error);
            return;
        }
    }
    if value.is_null() || !is_empty_selector(value) {
        matches_template(value, spec, PATH, errors);
    }
    always_restarted(spec, owner, errors);
}

/// Formats a selector as JSON with the members of its requirements in the order of Go's type.
fn selector_text(selector: &Value) -> String {
    let mut parts = Vec::new();
    if !meta::is_empty(&selector["matchLabels"]) {
        parts.push(format!("\"matchLabels\":{}", selector["matchLabels"]));
    }
    let requirements: Vec<String> = meta::list(&selector["matchExpressions"])
        .map(|one| {
            let values =
                if meta::is_empty(&one["values"]) { String::new() } else { format!(",\"values\":{}", one["values"]) };
            format!("{{\"key\":{},\"operator\":{}{values}}}", one["key"], one["operator"])
        })
        .collect();
    if !requirements.is_empty() {
        parts.push(format!("\"matchExpressions\":[{}]", requirements.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// Checks that the selector matches the labels of the pod template. An absent selector matches nothing.
pub(super) fn matches_template(selector: &Value, spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let template = path.child("template");
    let metadata = template.child("metadata");
    let value = &spec["template"]["metadata"]["labels"];
    let own = StringMap::deserialize(value).unwrap_or_default();
    let matches = if selector.is_null() {
        false
    } else {
        let selector = LabelSelector::deserialize(selector).map(|one| Selector::from_label_selector(Some(&one)));
        !matches!(selector, Ok(Ok(selector)) if !selector.matches(&own))
    };
    if !matches {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(metadata.child("labels"), value, detail));
    }
}

/// Checks the pod template of a workload. Follows `#ValidatePodTemplateSpec`.
pub(super) fn template(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let (value, path) = (&spec["template"], path.child("template"));
    labels(&value["metadata"]["labels"], path.child("labels"), errors);
    annotations(&value["metadata"]["annotations"], path.child("annotations"), errors);
    pod::spec(&value["spec"], path.child("spec"), errors);
    if !meta::is_empty(&value["spec"]["ephemeralContainers"]) {
        let spec = path.child("spec");
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(spec.child("ephemeralContainers"), detail));
    }
}

/// Checks a pod template whose restart policy must be `Always`. Follows `#ValidatePodTemplateSpecForReplicaSet`.
fn always_restarted(spec: &Value, owner: &str, errors: &mut Errors) {
    template(spec, PATH, errors);
    let pod = &spec["template"]["spec"];
    let template = PATH.child("template");
    let path = template.child("spec");
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(path.child("restartPolicy"), &json!(policy), &["Always"]));
    }
    if !pod["activeDeadlineSeconds"].is_null() {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::forbidden(path.child("activeDeadlineSeconds"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::defaulting;
    use crate::config::FeatureGates;

    fn check(kind: &'static Kind, spec: &Value, expected: &[&str]) {
        let mut value = json!({"metadata": {"name": "w"}, "spec": spec});
        let gates = FeatureGates::default();
        defaulting::apply(kind, &mut value, None, &gates);
        let mut errors = Errors::new(&gates);
        on_create(kind, &value, &mut errors);
        let errors: Vec<String> = errors.into_list().iter().map(ToString::to_string).collect();
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
    fn selector_must_match_the_template_labels() {
        for kind in [&DEPLOYMENTS, &REPLICA_SETS, &STATEFUL_SETS, &DAEMON_SETS] {
            check(kind, &spec(&json!({"matchLabels": {"a": "b"}}), "Always"), &[]);
            let none = r#"spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`"#;
            let expected = ["spec.selector: Required value", none];
            // The validation of daemon sets does not report a missing selector.
            let said = if kind.slot == DAEMON_SETS.slot { &expected[1..] } else { &expected };
            check(kind, &spec(&Value::Null, "Always"), said);
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
                &match kind.kind {
                    "Deployment" | "ReplicaSet" => vec![
                        r#"spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#,
                        r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Is"}]}: invalid label selector"#,
                    ],
                    "StatefulSet" => vec![
                        r#"spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#,
                        r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Is"}]}"#,
                    ],
                    _ => vec![
                        r#"spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#,
                    ],
                },
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
    fn negative_numbers_are_rejected() {
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
    fn jobs_need_a_terminating_restart_policy() {
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
    fn template_errors_name_the_path_in_the_template() {
        check(
            &DEPLOYMENTS,
            &json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}),
            &["spec.template.spec.containers: Required value"],
        );
    }
}
