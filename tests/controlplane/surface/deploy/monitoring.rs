//! The Prometheus expressions of rules and dashboards.

use std::collections::BTreeSet;

use serde_json::Value;

use super::expression::selectors;
use super::manifests::Manifests;
use super::pod::{list, text, token};
use crate::support::cluster::ControlPlane;

/// Names that Prometheus makes itself.
const PROMETHEUS: &[&str] = &["up"];

/// The expressions of a `PrometheusRule`, and the names that its recording rules make.
pub(crate) fn of_rules(rule: &Value) -> (Vec<String>, BTreeSet<String>) {
    let rules = || list(&rule["spec"]["groups"]).flat_map(|group| list(&group["rules"]));
    let expressions = rules().map(|rule| text(&rule["expr"]).to_owned()).collect();
    (expressions, rules().filter_map(|rule| rule["record"].as_str()).map(str::to_owned).collect())
}

/// The expressions of all dashboards of a `ConfigMap`.
pub(crate) fn of_dashboards(map: &Value) -> Result<Vec<String>, String> {
    let mut expressions = Vec::new();
    for (file, dashboard) in map["data"].as_object().into_iter().flatten() {
        let dashboard: Value = serde_json::from_str(text(dashboard)).map_err(|error| format!("{file}: {error}"))?;
        of_panels(&dashboard["panels"], &mut expressions);
    }
    Ok(expressions)
}

/// Panels may have panels.
fn of_panels(panels: &Value, expressions: &mut Vec<String>) {
    for panel in list(panels) {
        expressions.extend(list(&panel["targets"]).map(|target| text(&target["expr"]).to_owned()));
        of_panels(&panel["panels"], expressions);
    }
}

/// The families of a scrape.
pub(super) fn families(scrape: &str) -> BTreeSet<String> {
    let mut families = BTreeSet::new();
    for line in scrape.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) else { continue };
        families.insert(name.to_owned());
        if kind == "histogram" {
            families.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
    }
    families
}

/// Checks that there is an expression, and that each names series that there are, and no others.
pub(super) fn check(expressions: &[String], known: &BTreeSet<String>) -> Result<(), String> {
    for expression in expressions {
        let selectors = selectors(expression);
        let mut names = selectors.iter().map(|selector| selector.split('{').next().unwrap_or_default());
        let unknown = names.find(|name| !known.contains(*name) && !PROMETHEUS.contains(name));
        match (selectors.is_empty(), unknown) {
            (false, None) => {}
            (true, _) => return Err(format!("no series in {expression:?}")),
            (_, Some(unknown)) => return Err(format!("nobody has {unknown}, which {expression:?} is about")),
        }
    }
    if expressions.is_empty() { Err("no expressions".to_owned()) } else { Ok(()) }
}

/// The service account that the overlay lets see the metrics, made on a cluster: its namespace, and a token.
pub(crate) fn scraper(plane: &ControlPlane, overlay: &Manifests) -> Result<(String, String), String> {
    let subject = &overlay.object("ClusterRoleBinding", "kube-scheduler-rs-metrics")?["subjects"][0];
    let [namespace, account] = ["namespace", "name"].map(|field| text(&subject[field]));
    plane.kubectl(&["create", "namespace", namespace])?;
    plane.kubectl(&["create", "serviceaccount", account, "--namespace", namespace])?;
    Ok((namespace.to_owned(), token(plane, namespace, account)?))
}
