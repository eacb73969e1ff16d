//! The eviction subresource: deletes a pod if its disruption budget allows it. `kubectl drain` uses it.
//!
//! Follows `pkg/registry/core/pod/storage/eviction.go#EvictionREST.Create @v1.36.3`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::delete::{DeleteOptions, check_preconditions};
use super::kinds::{POD_DISRUPTION_BUDGETS, PODS};
use super::meta;
use super::object::Object;
use super::owners::Managed;
use super::part::Part;
use super::store::State;
use super::update::UpdateBase;
use crate::apimachinery::{FieldError, Status};
use crate::k8s::label_selector::Selector;

/// Largest number of evictions that a budget's controller may have left unconfirmed.
/// `pkg/registry/core/pod/storage/eviction.go#MaxDisruptedPodSize @v1.36.3`.
const MOST_UNCONFIRMED: usize = 2000;

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Options of an eviction request.
struct EvictionRequest {
    /// Options of the delete.
    options: Value,
    is_dry: bool,
}

/// Decision of the disruption budgets about an eviction.
enum BudgetDecision {
    Granted,
    /// The eviction is allowed without being counted, provided that the pod has not changed. Holds the budget's name, for the
    /// error message if the pod has changed.
    Uncounted(String),
}

impl EvictionRequest {
    /// Reads the delete options in the body. If the request is a dry run, the delete is also a dry run.
    /// Follows `#propagateDryRun`.
    fn of(eviction: &Value, dry_run: bool) -> Result<Self, Status> {
        let mut options = eviction["deleteOptions"].clone();
        if options["ignoreStoreReadErrorWithClusterBreakingPotential"] == true {
            let detail = "can not be set for pod eviction, try after removing the option";
            let path = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential";
            let error = FieldError::invalid(path, &json!(true), detail);
            return Err(Status::invalid("policy", "Eviction", meta::text(eviction, "name"), &[error]));
        }
        let own: Vec<&str> = meta::list(&options["dryRun"]).filter_map(Value::as_str).collect();
        let is_dry = dry_run || !own.is_empty();
        if dry_run && !own.is_empty() && own != ["All"] {
            let own = own.join(" ");
            let text = format!("Non-matching dry-run options in request and content: [All] and [{own}]");
            return Err(Status::unknown(text));
        }
        if dry_run && own.is_empty() {
            if !options.is_object() {
                options = json!({});
            }
            options["dryRun"] = json!(["All"]);
        }
        Ok(Self { options, is_dry })
    }
}

impl State {
    /// Evicts a pod if its disruption budget allows it.
    pub(super) fn evict(&mut self, at: (&str, &str), eviction: &Value, dry_run: bool) -> Result<(), Status> {
        let (namespace, name) = at;
        if meta::text(eviction, "name") != name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut wish = EvictionRequest::of(eviction, dry_run)?;
        let pod = self.existing(&PODS, namespace, name)?;
        let value = pod.value();
        // Evicting a pod that does not run, or is already being deleted, disrupts nothing.
        let is_free = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"));
        let leave = if is_free || meta::is_deleting(&value) {
            BudgetDecision::Granted
        } else {
            let budgets = self.budgets_of(&pod);
            match &budgets[..] {
                [] => BudgetDecision::Granted,
                [budget] => self.ask(budget, &value, &wish)?,
                _ => {
                    let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                                support.";
                    return Err(Status::unknown(text));
                }
            }
        };
        let has_version = !wish.options["preconditions"]["resourceVersion"].is_null();
        if matches!(leave, BudgetDecision::Uncounted(_)) {
            // This replaces the resource version in the request's preconditions, if there is one.
            let conditions = meta::child(&mut wish.options, "preconditions");
            conditions.insert("resourceVersion".to_owned(), json!(pod.version().to_string()));
        }
        match (self.mark_and_delete(&pod, wish), leave) {
            (Ok(()), _) => Ok(()),
            (Err(status), BudgetDecision::Uncounted(budget)) if status.reason == "Conflict" && !has_version => {
                drop(status);
                Err(unprocessed(&budget))
            }
            (Err(status), _) => Err(status),
        }
    }

    /// Returns the budgets that select a pod. Follows `#EvictionREST.getPodDisruptionBudgets`.
    fn budgets_of(&self, pod: &Object) -> Vec<Arc<Object>> {
        let selects = |budget: &Value| {
            let selector = LabelSelector::deserialize(&budget["spec"]["selector"]).ok();
            let selector = Selector::from_label_selector(selector.as_ref());
            selector.is_ok_and(|selector| selector.matches_by(|key| pod.label(key)))
        };
        let all = self.shelf(&POD_DISRUPTION_BUDGETS).objects.values();
        let near = all.filter(|budget| budget.namespace() == pod.namespace());
        near.filter(|budget| selects(&budget.value())).cloned().collect()
    }

    /// Asks a budget whether the pod may be evicted, and counts the eviction in the budget.
    fn ask(&mut self, budget: &Arc<Object>, pod: &Value, wish: &EvictionRequest) -> Result<BudgetDecision, Status> {
        let value = budget.value();
        let status = &value["status"];
        let count = |key: &str| status[key].as_i64().unwrap_or(0);
        let is_ready = meta::list(&pod["status"]["conditions"])
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if !is_ready {
            let always = value["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
            if always || count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0 {
                return Ok(BudgetDecision::Uncounted(budget.name().to_owned()));
            }
        }
        check(budget.name(), &value)?;
        let spent = self.spend(value, meta::text(pod, "name"));
        if !wish.is_dry {
            // The server itself writes the budget, not the client.
            let author = self.author.take();
            let before = UpdateBase::read(budget.clone(), Part::Status, true)?;
            let written = self.update(&POD_DISRUPTION_BUDGETS, &before, Part::Status, spent, false);
            self.author = author;
            written?;
        }
        Ok(BudgetDecision::Granted)
    }

    /// Returns a budget after one more eviction. Follows `#EvictionREST.checkAndDecrement`.
    fn spend(&self, mut budget: Value, pod: &str) -> Value {
        let now = meta::time_text(self.now);
        let observed = budget["status"]["observedGeneration"].clone();
        let status = meta::child(&mut budget, "status");
        let left = status.get("disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0) - 1;
        status.insert("disruptionsAllowed".to_owned(), json!(left));
        if left == 0 {
            let mut condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
                "message": "", "lastTransitionTime": now});
            if !meta::is_empty(&observed) {
                condition["observedGeneration"] = observed;
            }
            put_condition(status, condition);
        }
        let unconfirmed = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if !unconfirmed.is_object() {
            *unconfirmed = json!({});
        }
        unconfirmed[pod] = json!(now);
        budget
    }

    /// Adds the reason of the eviction to the pod's status, and deletes the pod. Follows `#addConditionAndDeletePod`.
    fn mark_and_delete(&mut self, pod: &Arc<Object>, wish: EvictionRequest) -> Result<(), Status> {
        let mut asked = wish.options;
        if !wish.is_dry {
            let text = |key: &str| asked["preconditions"][key].as_str().map(str::to_owned);
            let (uid, resource_version) = (text("uid"), text("resourceVersion").filter(|text| !text.is_empty()));
            let conditions = DeleteOptions { uid, resource_version, ..DeleteOptions::default() };
            check_preconditions(&PODS, pod, &conditions)?;
            let before = UpdateBase::read(pod.clone(), Part::Status, true)?;
            let mut value = before.value().clone();
            let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null,
                "lastTransitionTime": meta::time_text(self.now)});
            put_condition(meta::child(&mut value, "status"), condition);
            // The server itself writes this status, so no manager becomes its owner.
            self.applied = self.settings.exact.then(|| Managed::of(before.value()));
            let marked = self.update(&PODS, &before, Part::Status, value, false);
            self.applied = None;
            let version = marked?.version();
            if !asked["preconditions"]["resourceVersion"].is_null() {
                asked["preconditions"]["resourceVersion"] = json!(version.to_string());
            }
        }
        let options = DeleteOptions::parse(&asked)?;
        self.delete(&PODS, (pod.namespace(), pod.name()), &options).map(drop)
    }
}

/// Replaces the condition of the same type, or adds one. The transition time is kept if the status is unchanged.
fn put_condition(status: &mut Map<String, Value>, mut condition: Value) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|old| old["type"] == condition["type"]) {
        None => list.push(condition),
        Some(old) => {
            if old["status"] == condition["status"] {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
    }
}

/// Checks whether a budget allows an eviction. Follows `#EvictionREST.checkAndDecrement`.
fn check(name: &str, budget: &Value) -> Result<(), Status> {
    let status = &budget["status"];
    let count = |key: &str| status[key].as_i64().unwrap_or(0);
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        return Err(unprocessed(name));
    }
    let forbidden = |why: &str| Status::forbidden_on("policy", "poddisruptionbudget", name, why);
    if count("disruptionsAllowed") < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_UNCONFIRMED) {
        return Err(forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if count("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let (desired, current) = (count("desiredHealthy"), count("currentHealthy"));
    let condition = meta::list(&status["conditions"]).find(|condition| condition["type"] == "DisruptionAllowed");
    let text = |key: &str| condition.and_then(|condition| condition[key].as_str()).unwrap_or_default();
    let explains = text("status") == "False" && !text("message").is_empty();
    let why = if explains && text("reason") == "SyncFailed" {
        format!("does not allow evicting pods currently because it failed sync: {}", text("message"))
    } else if current <= desired {
        format!("needs {desired} healthy pods and has {current} currently")
    } else if explains {
        format!("does not allow evicting pods currently ({}): {}", text("reason"), text("message"))
    } else {
        "does not allow evicting pods currently".to_owned()
    };
    Err(Status::too_many_requests(VIOLATES).cause(
        "DisruptionBudget",
        format!("The disruption budget {name} {why}"),
        "",
    ))
}

/// Returns the 429 for a budget that its controller has not processed yet. Follows `#createTooManyRequestsError`.
fn unprocessed(name: &str) -> Status {
    let why = format!("The disruption budget {name} is still being processed by the server.");
    Status::too_many_requests(VIOLATES).cause("DisruptionBudget", why, "").retry_after(10)
}
