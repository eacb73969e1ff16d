//! The rights that roles grant, and those that were used.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::pod::{list, text};
use crate::support::cluster::ControlPlane;

/// A right of a rule: one verb on one resource of one group, of one name where it is limited to that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, verb, name } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

/// Permissions that a role grants, without duplicates.
pub(super) fn granted(role: &Value) -> Result<BTreeSet<Right>, String> {
    let mut rights = BTreeSet::new();
    for rule in list(&role["rules"]) {
        let names: Vec<Option<String>> = match rule["resourceNames"].as_array() {
            Some(names) => names.iter().map(|name| Some(text(name).to_owned())).collect(),
            None => vec![None],
        };
        for group in list(&rule["apiGroups"]).map(text) {
            for resource in list(&rule["resources"]).map(text) {
                for verb in list(&rule["verbs"]).map(text) {
                    for name in &names {
                        let [group, resource, verb] = [group, resource, verb].map(str::to_owned);
                        let right = Right { group, resource, verb, name: name.clone() };
                        if [&right.group, &right.resource, &right.verb].iter().any(|part| part.contains('*')) {
                            return Err(format!("a right to anything: {right}"));
                        }
                        if let Some(twice) = rights.replace(right) {
                            return Err(format!("granted twice: {twice}"));
                        }
                    }
                }
            }
        }
    }
    Ok(rights)
}

/// What a user has asked for on this control plane, in words that rights understand. A request that was denied is an error.
pub(super) fn asked(plane: &ControlPlane, user: &str) -> Result<Vec<Asked>, String> {
    let mut denied = BTreeSet::new();
    let mut asked = Vec::new();
    for entry in plane.audited(user)? {
        let part = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        if matches!(entry["responseStatus"]["code"].as_u64(), Some(401 | 403)) {
            denied.insert(format!("{} {}", part("/verb"), part("/requestURI")));
        }
        let resource = match part("/objectRef/subresource") {
            none if none.is_empty() => part("/objectRef/resource"),
            subresource => format!("{}/{subresource}", part("/objectRef/resource")),
        };
        let [group, verb, name] = ["/objectRef/apiGroup", "/verb", "/objectRef/name"].map(part);
        asked.push(Asked { group, resource, verb, name });
    }
    if denied.is_empty() { Ok(asked) } else { Err(format!("{user} was denied: {denied:#?}")) }
}

/// A request of the audit log.
pub(super) struct Asked {
    group: String,
    resource: String,
    verb: String,
    name: String,
}

impl Asked {
    /// Whether this right is one for it.
    pub(super) fn uses(&self, right: &Right) -> bool {
        let same = (&self.group, &self.resource, &self.verb) == (&right.group, &right.resource, &right.verb);
        same && right.name.as_ref().is_none_or(|name| *name == self.name)
    }
}
