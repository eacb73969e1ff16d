//! Tables of workloads and their revisions.

use serde_json::{Value, json};

use super::cells::{containers, has_condition, human, labels, selector, selector_or_none, time};
use super::{Column, Layout, Subject};
use crate::apiserver::meta::list;

const CONTAINERS: Column = Column::text("Containers").wide();
const IMAGES: Column = Column::text("Images").wide();
const SELECTOR: Column = Column::text("Selector").wide();

const REPLICATED: &[Column] = &[
    Column::name("Name"),
    Column::number("Desired"),
    Column::number("Current"),
    Column::number("Ready"),
    Column::text("Age"),
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const REPLICATION_CONTROLLERS: Layout =
    Layout { columns: REPLICATED, cells: |subject| replicated(subject, &labels(subject.at("/spec/selector"))) };

pub(super) const REPLICA_SETS: Layout = Layout {
    columns: REPLICATED,
    cells: |subject| replicated(subject, &selector_or_none(subject.at("/spec/selector"))),
};

fn replicated(subject: &Subject<'_>, selector: &str) -> Vec<Value> {
    let counts = ["/spec/replicas", "/status/replicas", "/status/readyReplicas"];
    row(subject, counts.map(|count| json!(subject.number(count))), selector)
}

/// Returns the cells of a workload: its name, the cells of its kind, age, containers, images and selector.
fn row(subject: &Subject<'_>, of_kind: impl IntoIterator<Item = Value>, selector: &str) -> Vec<Value> {
    let [names, images] = containers(subject.at("/spec/template/spec"));
    let mut cells = vec![subject.name()];
    cells.extend(of_kind);
    cells.extend([subject.age(), names, images, json!(selector)]);
    cells
}

fn ready(subject: &Subject<'_>) -> Value {
    json!(format!("{}/{}", subject.number("/status/readyReplicas"), subject.number("/spec/replicas")))
}

pub(super) const DEPLOYMENTS: Layout = Layout {
    columns: &[
        Column::name("Name"),
        Column::text("Ready"),
        Column::text("Up-to-date"),
        Column::text("Available"),
        Column::text("Age"),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |subject| {
        let updated = json!(subject.number("/status/updatedReplicas"));
        let available = json!(subject.number("/status/availableReplicas"));
        row(subject, [ready(subject), updated, available], &selector(subject.at("/spec/selector")))
    },
};

pub(super) const STATEFUL_SETS: Layout = Layout {
    columns: &[Column::name("Name"), Column::text("Ready"), Column::text("Age"), CONTAINERS, IMAGES],
    cells: |subject| {
        let [names, images] = containers(subject.at("/spec/template/spec"));
        vec![subject.name(), ready(subject), subject.age(), names, images]
    },
};

pub(super) const DAEMON_SETS: Layout = Layout {
    columns: &[
        Column::name("Name"),
        Column::number("Desired"),
        Column::number("Current"),
        Column::number("Ready"),
        Column::number("Up-to-date"),
        Column::number("Available"),
        Column::text("Node Selector"),
        Column::text("Age"),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |subject| {
        let counts = [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ];
        let counts = counts.map(|count| json!(subject.number(&format!("/status/{count}"))));
        let nodes = json!(labels(subject.at("/spec/template/spec/nodeSelector")));
        row(subject, counts.into_iter().chain([nodes]), &selector_or_none(subject.at("/spec/selector")))
    },
};

pub(super) const CONTROLLER_REVISIONS: Layout = Layout {
    columns: &[Column::name("Name"), Column::text("Controller"), Column::text("Revision"), Column::text("Age")],
    cells: |subject| {
        let controller = list(subject.at("/metadata/ownerReferences")).find(|owner| owner["controller"] == true);
        let text = |owner: &Value, key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let owner = controller.map_or_else(
            || "<none>".to_owned(),
            |owner| {
                let version = text(owner, "apiVersion");
                let group = version.split_once('/').map_or_else(String::new, |(group, _)| format!(".{group}"));
                format!("{}{group}/{}", text(owner, "kind").to_lowercase(), text(owner, "name"))
            },
        );
        vec![subject.name(), json!(owner), json!(subject.number("/revision")), subject.age()]
    },
};

pub(super) const JOBS: Layout = Layout {
    columns: &[
        Column::name("Name"),
        Column::text("Status"),
        Column::text("Completions"),
        Column::text("Duration"),
        Column::text("Age"),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |job| {
        let of_kind = [json!(job_status(job)), json!(completions(job)), json!(duration(job))];
        row(job, of_kind, &selector_or_none(job.at("/spec/selector")))
    },
};

/// Returns the status of a job. Follows `pkg/printers/internalversion/printers.go#printJob @v1.36.3`.
fn job_status(job: &Subject<'_>) -> &'static str {
    let has = |sort: &str| has_condition(job.at("/status/conditions"), sort);
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if job.is_deleting() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Subject<'_>) -> String {
    let succeeded = job.number("/status/succeeded");
    match (job.at("/spec/completions").as_i64(), job.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Subject<'_>) -> String {
    let Some(start) = time(job.at("/status/startTime")) else { return String::new() };
    human(time(job.at("/status/completionTime")).unwrap_or(job.now).duration_since(start))
}

pub(super) const CRON_JOBS: Layout = Layout {
    columns: &[
        Column::name("Name"),
        Column::text("Schedule"),
        Column::text("Timezone"),
        Column::flag("Suspend"),
        Column::number("Active"),
        Column::text("Last Schedule"),
        Column::text("Age"),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |job| {
        let [names, images] = containers(job.at("/spec/jobTemplate/spec/template/spec"));
        let last = match job.text("/status/lastScheduleTime") {
            "" => "<none>".to_owned(),
            _ => job.since("/status/lastScheduleTime"),
        };
        let suspend = match job.at("/spec/suspend").as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        vec![
            job.name(),
            json!(job.text("/spec/schedule")),
            json!(job.text_or("/spec/timeZone", "<none>")),
            json!(suspend),
            json!(list(job.at("/status/active")).count()),
            json!(last),
            job.age(),
            names,
            images,
            json!(selector_or_none(job.at("/spec/jobTemplate/spec/selector"))),
        ]
    },
};
