//! Discovery: what both servers say they have. Ours has fewer kinds, so of the real one's documents only that is looked at
//! which ours says, too; of that, everything has to be the same.

use serde_json::Value;

use super::Pair;
use super::normal::differences;

/// How clients ask for all groups in one document.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Lists whose elements are looked at only if ours has them, and what they are told apart by.
const PARTIAL: [(&str, &[&str]); 6] = [
    ("groups", &["name"]),
    ("items", &["metadata", "name"]),
    ("resources", &["name"]),
    ("resources", &["resource"]),
    ("subresources", &["subresource"]),
    ("versions", &["version"]),
];

/// What depends on where a server listens, or on how it stores.
const OWN: [&str; 2] = ["serverAddressByClientCIDRs", "storageVersionHash"];

impl Pair {
    /// Asks both for all documents of discovery.
    pub(super) async fn discover(&self, wrong: &mut Vec<String>) -> Result<usize, String> {
        let mut paths = vec![("/api".to_owned(), ""), ("/apis".to_owned(), ""), ("/api/v1".to_owned(), "")];
        paths.extend([("/api".to_owned(), AGGREGATED), ("/apis".to_owned(), AGGREGATED)]);
        let groups = self.ours.ask(0, ("GET", "/apis"), &[], Vec::new()).await?.body;
        let names: Vec<&str> = elements(&groups["groups"]).filter_map(|group| group["name"].as_str()).collect();
        if names.len() < 5 {
            return Err(format!("the groups are {names:?}"));
        }
        for name in names {
            paths.extend([(format!("/apis/{name}"), ""), (format!("/apis/{name}/v1"), "")]);
        }
        let count = paths.len();
        for (path, accept) in paths {
            let headers: Vec<(String, String)> =
                if accept.is_empty() { Vec::new() } else { vec![("Accept".to_owned(), accept.to_owned())] };
            let mut theirs = self.theirs.ask(0, ("GET", &path), &headers, Vec::new()).await?;
            let mut ours = self.ours.ask(0, ("GET", &path), &headers, Vec::new()).await?;
            forget(&mut theirs.body);
            forget(&mut ours.body);
            share(&mut theirs.body, &ours.body);
            if (theirs.code, &theirs.headers, &theirs.body) != (ours.code, &ours.headers, &ours.body) {
                let mut places = Vec::new();
                differences("", &theirs.body, &ours.body, &mut places);
                let codes = format!("{} {:?}, ours {} {:?}", theirs.code, theirs.headers, ours.code, ours.headers);
                wrong.push(format!("GET {path} {accept}: {codes}\n  {}", places.join("\n  ")));
            }
        }
        Ok(count)
    }
}

fn elements(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// The value at the end of a path.
fn named<'v>(path: &[&str], value: &'v Value) -> Option<&'v Value> {
    path.iter().try_fold(value, |at, step| at.get(*step))
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !OWN.contains(&&**key));
            members.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Takes out of the real document what ours does not say.
fn share(theirs: &mut Value, ours: &Value) {
    match theirs {
        Value::Object(members) => {
            for (key, by) in PARTIAL {
                let known: Vec<&Value> = elements(&ours[key]).filter_map(|element| named(by, element)).collect();
                let Some(list) = members.get_mut(key).and_then(Value::as_array_mut) else { continue };
                list.retain(|element| named(by, element).is_none_or(|name| known.contains(&name)));
                if list.is_empty() && ours[key].is_null() {
                    members.remove(key);
                }
            }
            members.iter_mut().for_each(|(key, member)| share(member, &ours[&**key]));
        }
        Value::Array(items) => items.iter_mut().enumerate().for_each(|(at, item)| share(item, &ours[at])),
        _ => {}
    }
}
