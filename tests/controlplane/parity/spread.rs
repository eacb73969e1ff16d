//! Which features of spreading a comparison has reached: a constraint counts where it turned a node away or told nodes apart.

use serde_json::Value;

use super::case::Case;

const PLUGIN: &str = "PodTopologySpread";

/// The features of a pod's constraints that showed in the answer about it: of hard ones where they keep it from a domain
/// that is too full.
pub(crate) fn reached(case: &Case, answer: &Value) -> Vec<String> {
    let is_asked = |object: &&Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        object["kind"] == "Pod" && answer["pod"] == format!("{}/{}", text("namespace"), text("name"))
    };
    let Some(pod) = case.objects.iter().find(is_asked) else { return Vec::new() };
    let nodes = list(&answer["nodes"]);
    let rejects = nodes.iter().any(|node| node["plugin"] == PLUGIN && node["code"] == "Unschedulable");
    let mut scores = nodes.iter().map(|node| &node["scores"][PLUGIN]["raw"]).filter(|raw| raw.is_number());
    let first = scores.next();
    let tells_apart = scores.any(|raw| Some(raw) != first);
    let mut features = Vec::new();
    for (shows, action, kind) in [(rejects, "DoNotSchedule", "hard"), (tells_apart, "ScheduleAnyway", "soft")] {
        if shows {
            let found = of_pod(case, pod, action).into_iter().map(|feature| format!("spread {kind} {feature}"));
            features.extend(found);
        }
    }
    features
}

/// The features that constraints with this action use.
fn of_pod(case: &Case, pod: &Value, action: &str) -> Vec<String> {
    let own = list(&pod["spec"]["topologySpreadConstraints"]);
    if own.is_empty() {
        let controller = list(&pod["metadata"]["ownerReferences"]).iter().find(|owner| owner["controller"] == true);
        let belongs = controller.and_then(|owner| owner["kind"].as_str()).unwrap_or("nobody");
        return vec![format!("by {} defaults", defaulting(case, pod)), format!("by default of {belongs}")];
    }
    let constraints: Vec<&Value> = own.iter().filter(|own| own["whenUnsatisfiable"] == action).collect();
    let mut features: Vec<String> =
        constraints.iter().map(|own| format!("by {}", own["topologyKey"].as_str().unwrap_or_default())).collect();
    if constraints.len() > 1 {
        features.push("several".to_owned());
    }
    for own in constraints {
        features.extend(of_constraint(own));
    }
    features
}

fn of_constraint(own: &Value) -> Vec<String> {
    let mut features = Vec::new();
    for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if let Some(policy) = own[field].as_str() {
            features.push(format!("{field} {policy}"));
        }
    }
    for field in ["minDomains", "matchLabelKeys"] {
        if !own[field].is_null() {
            features.push(field.to_owned());
        }
    }
    features.push(match own["labelSelector"].as_object() {
        None => "selector of nothing".to_owned(),
        Some(selector) if selector.is_empty() => "selector of everything".to_owned(),
        Some(selector) => format!("selector {}", selector.keys().cloned().collect::<Vec<_>>().join(" ")),
    });
    features
}

/// How the pod's profile makes up constraints for pods that have none.
fn defaulting<'a>(case: &'a Case, pod: &Value) -> &'a str {
    let profiles = list(&case.config["profiles"]);
    let profile = profiles.iter().find(|profile| profile["schedulerName"] == pod["spec"]["schedulerName"]);
    let args = profile.and_then(|profile| list(&profile["pluginConfig"]).iter().find(|entry| entry["name"] == PLUGIN));
    args.and_then(|entry| entry["args"]["defaultingType"].as_str()).unwrap_or("System")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
