//! Validation of jobs and cron jobs.
//!
//! Follows `pkg/apis/batch/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, non_negative, text};
use super::workload::{matches_template, template};
use super::{container, schedule, scheduling};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;

/// Largest `parallelism` of an indexed job, `#maxParallelismForIndexedJob`.
const MAX_INDEXED_PARALLELISM: i64 = 100_000;

/// Longest name of a cron job, in bytes: 63 less the 11 of the timestamp appended to the names of its jobs.
/// `#ValidateCronJobCreate`.
const MAX_CRON_JOB_NAME: usize = 52;

/// Checks the spec of a new job. Follows `#ValidateJob`, without the checks of generated selectors.
pub(super) fn on_job(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    job_spec(spec, path, errors);
    let (selector, here) = (&spec["selector"], path.child("selector"));
    if selector.is_null() {
        errors.push(FieldError::required(here, ""));
    } else {
        scheduling::label_selector(selector, here, errors);
    }
    matches_template(selector, spec, path, errors);
}

/// Checks a job spec, standalone or in a cron job. Follows `#validateJobSpec`.
fn job_spec(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        non_negative(spec, key, path, errors);
    }
    let mode = text(spec, "completionMode");
    let known = ["NonIndexed", "Indexed"];
    if !spec["completionMode"].is_null() && !known.contains(&mode) {
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
    let known =
        if spec["podFailurePolicy"].is_null() { &["Failed", "TerminatingOrFailed"][..] } else { &["Failed"][..] };
    if let Some(policy) = spec["podReplacementPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(path.child("podReplacementPolicy"), &json!(policy), known));
    }
    template(spec, path, errors);
    let template = path.child("template");
    let pod = template.child("spec");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            let detail = r#"valid values: "OnFailure", "Never""#;
            errors.push(FieldError::required(pod.child("restartPolicy"), detail));
        }
        policy => {
            let known = ["OnFailure", "Never"];
            errors.push(FieldError::not_supported(pod.child("restartPolicy"), &json!(policy), &known));
        }
    }
}

/// Checks a new cron job. Follows `#ValidateCronJobCreate`, but accepts unknown time zones.
pub(super) fn on_cron_job(value: &Value, path: Path<'_>, errors: &mut Errors) {
    cron_job_spec(&value["spec"], path, errors);
    let name = meta::text(value, "name");
    if name.len() > MAX_CRON_JOB_NAME {
        let detail = format!("must be no more than {MAX_CRON_JOB_NAME} characters");
        errors.push(FieldError::invalid("metadata.name", &json!(name), detail));
    }
}

/// Checks a cron job's spec. Follows `#validateCronJobSpec`.
pub(super) fn cron_job_spec(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let text_of_schedule = text(spec, "schedule");
    let here = path.child("schedule");
    if text_of_schedule.is_empty() {
        errors.push(FieldError::required(here, ""));
    } else if text_of_schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(here, &json!(text_of_schedule), detail));
    } else if let Some(why) = schedule::error(text_of_schedule) {
        errors.push(FieldError::invalid(here, &json!(text_of_schedule), why));
    }
    non_negative(spec, "startingDeadlineSeconds", path, errors);
    if let Some(zone) = spec["timeZone"].as_str() {
        let detail = match zone {
            "" => "timeZone must be nil or non-empty string",
            _ if zone.eq_ignore_ascii_case("local") => {
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            }
            _ => "",
        };
        if !detail.is_empty() {
            errors.push(FieldError::invalid(path.child("timeZone"), &json!(zone), detail));
        }
    }
    container::one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], path, errors);
    let job_template = path.child("jobTemplate");
    let (job, job_path) = (&spec["jobTemplate"]["spec"], job_template.child("spec"));
    job_spec(job, job_path, errors);
    if job["manualSelector"] == true {
        let known = ["nil", "false"];
        errors.push(FieldError::not_supported(job_path.child("manualSelector"), &json!(true), &known));
    }
    if !job["selector"].is_null() {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(job_path.child("selector"), &job["selector"], detail));
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        non_negative(spec, key, path, errors);
    }
}
