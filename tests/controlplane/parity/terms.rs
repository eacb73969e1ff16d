//! Which features of terms on other pods a comparison has reached: who has the term, in which list, and what it uses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keys by which terms have their domains.
pub(crate) const TOPOLOGY: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "zone",
    "zone",
    "disk",
    "no-such-label",
];

const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Everything that [`features`] may say and has to be reached.
pub(crate) fn all_features() -> Vec<String> {
    let mut of_term: Vec<String> = TOPOLOGY.iter().map(|key| (*key).to_owned()).collect();
    for selector in ["labelSelector", "namespaceSelector"] {
        of_term.extend(["absent", "empty"].iter().chain(&OPERATORS).map(|what| format!("{selector} {what}")));
    }
    of_term.extend(["namespaces".to_owned(), "several".to_owned()]);
    let mut all = Vec::new();
    for who in ["existing", "pending"] {
        for kind in ["podAffinity", "podAntiAffinity"] {
            for list in ["required", "preferred"] {
                all.extend(of_term.iter().map(|feature| format!("{who} {list} {kind} {feature}")));
            }
        }
    }
    all
}

/// What the terms of these pods use, in words.
pub(crate) fn features(objects: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let who = if pod["spec"].get("nodeName").is_some() { "existing" } else { "pending" };
        for kind in ["podAffinity", "podAntiAffinity"] {
            for list in ["required", "preferred"] {
                let terms = &pod["spec"]["affinity"][kind][format!("{list}DuringSchedulingIgnoredDuringExecution")];
                let terms = terms.as_array().map_or(&[][..], Vec::as_slice);
                for term in terms {
                    let term = term.get("podAffinityTerm").unwrap_or(term);
                    found.extend(features_of(term).map(|feature| format!("{who} {list} {kind} {feature}")));
                }
                if terms.len() > 1 {
                    found.insert(format!("{who} {list} {kind} several"));
                }
            }
        }
    }
    found
}

fn features_of(term: &Value) -> impl Iterator<Item = String> {
    let mut found = vec![term["topologyKey"].as_str().unwrap_or_default().to_owned()];
    for name in ["labelSelector", "namespaceSelector"] {
        let Some(selector) = term.get(name) else {
            found.push(format!("{name} absent"));
            continue;
        };
        if selector.as_object().is_some_and(Map::is_empty) {
            found.push(format!("{name} empty"));
        }
        let expressions = selector["matchExpressions"].as_array();
        let operators = expressions.into_iter().flatten().filter_map(|expression| expression["operator"].as_str());
        found.extend(operators.map(|operator| format!("{name} {operator}")));
    }
    if term.get("namespaces").is_some() {
        found.push("namespaces".to_owned());
    }
    found.into_iter()
}
