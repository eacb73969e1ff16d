//! The same kubectl commands against a real control plane and against the embedded server: what they print is compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use super::alike::normalised;
use super::{Embedded, kubectl};
use crate::support::cluster::{ControlPlane, Process, wait_for};

/// Commands and the files that they name.
const COMMANDS: &str = include_str!("commands.txt");
const MANIFESTS: &str = include_str!("manifests.yaml");

/// A command's requests take milliseconds; deletes wait for nobody here.
const BOUND: Duration = Duration::from_secs(30);

/// What happens to a pod while kubectl watches.
const WATCHED: &[&str] = &[
    "create -f pod.yaml",
    "label pod web watched=yes",
    "create --raw /api/v1/namespaces/default/pods/web/binding -f binding.json",
    "delete pod web --grace-period=0 --force",
];

/// Lines that the watch prints: the header, then the pod created, labelled, bound, marked as deleted and deleted.
const WATCH_LINES: usize = 6;

const BINDING: &str =
    r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},"target":{"kind":"Node","name":"n1"}}"#;

/// One of the two servers, as kubectl sees it.
struct Side {
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Side {
    fn new(kubeconfig: PathBuf, folder: PathBuf) -> Result<Self, String> {
        let files: BTreeMap<String, String> = serde_yaml::from_str(MANIFESTS).map_err(|error| error.to_string())?;
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for (name, text) in
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain([("binding.json", BINDING)])
        {
            fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(Self { kubeconfig, folder })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = kubectl(&self.kubeconfig, &self.folder);
        command.args(words(line));
        command
    }

    /// What a command prints, and how it ends.
    fn run(&self, line: &str) -> Result<String, String> {
        let output = self.command(line).output().map_err(|error| format!("kubectl: {error}"))?;
        let text = |bytes: &[u8]| normalised(&String::from_utf8_lossy(bytes));
        let errors = text(&output.stderr);
        let out = if line.contains("--show-managed-fields") {
            normalised(&ordered(&output.stdout))
        } else {
            text(&output.stdout)
        };
        Ok(format!("{out}\n--- stderr\n{errors}\n--- exit code {:?}", output.status.code()))
    }

    /// What a watch prints while things happen.
    fn watch(&self) -> Result<String, String> {
        let process = Process::start("watch", &self.folder, &mut self.command("get pods -w -l app=web -o wide"))?;
        let log = self.folder.join("watch.log");
        let mut seen = lines(&log).len();
        for (at, change) in WATCHED.iter().enumerate() {
            let done = self.run(change)?;
            if !done.ends_with("Some(0)") {
                return Err(format!("{change}: {done}"));
            }
            // The header comes with the first line; a delete makes two.
            seen = [2, 3, 4, WATCH_LINES][at].max(seen);
            wait_for("the watch's next line", BOUND, || Ok((lines(&log).len() >= seen).then_some(())))
                .map_err(|error| format!("after {change}: {error}; {}", process.tail()))?;
        }
        let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
        drop(process);
        Ok(normalised(&text))
    }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// An object's YAML with its managers in an order without times: theirs may fall into one second or into two.
fn ordered(yaml: &[u8]) -> String {
    fn order(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::Array(managers)) = map.get_mut("managedFields") {
                    managers
                        .sort_by_key(|entry| ["operation", "manager", "subresource"].map(|key| entry[key].to_string()));
                }
                map.values_mut().for_each(order);
            }
            Value::Array(items) => items.iter_mut().for_each(order),
            _ => {}
        }
    }
    let Ok(mut value) = serde_yaml::from_slice::<Value>(yaml) else {
        return String::from_utf8_lossy(yaml).into_owned();
    };
    order(&mut value);
    serde_yaml::to_string(&value).unwrap_or_default()
}

/// The words of a command line; those in single quotes are one.
fn words(line: &str) -> Vec<&str> {
    let quoted = line.split('\'').enumerate();
    quoted.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

/// get in all of its forms, describe, create, apply of both kinds, patches, labels, deletes and what goes wrong: stdout,
/// stderr and exit code are the same, and so are the lines of a watch.
pub(crate) fn kubectl_sees_the_same_on_the_embedded_server() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let embedded = Embedded::start("kubectl")?;
    let real = Side::new(plane.kubeconfig(), plane.folder().join("kubectl"))?;
    let ours = Side::new(embedded.kubeconfig(), embedded.folder.clone())?;
    let mut different = Vec::new();
    let commands = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in commands {
        count += 1;
        compare(line, &real.run(line)?, &ours.run(line)?, &mut different);
    }
    compare("get pods -w", &real.watch()?, &ours.watch()?, &mut different);
    println!("compared {count} commands and a watch, {} differ", different.len());
    embedded.remove()?;
    if !different.is_empty() {
        return Err(different.join("\n\n").into());
    }
    Ok(plane.remove()?)
}

fn compare(what: &str, real: &str, ours: &str, different: &mut Vec<String>) {
    if real == ours {
        return;
    }
    let only = |one: &str, other: &str| {
        let known: Vec<&str> = other.lines().collect();
        one.lines().filter(|line| !known.contains(line)).collect::<Vec<_>>().join("\n    ")
    };
    different.push(format!("kubectl {what}\n  real:\n    {}\n  ours:\n    {}", only(real, ours), only(ours, real)));
}
