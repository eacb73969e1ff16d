//! The history of every pod, straight from etcd: it misses nothing, whatever becomes of API servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, wait_for};

/// What has etcd hold objects as JSON, which can be read here.
pub(super) const FLAGS: &[&str] = &["--storage-media-type=application/json"];

/// How long etcd may take to tell what it has taken in.
const TOLD: Duration = Duration::from_mins(1);

/// What became of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    /// Its name; all are in one namespace.
    pub(super) pod: String,
    /// What each write has made of `spec.nodeName` that changed it.
    pub(super) nodes: Vec<String>,
    /// The last version.
    version: u64,
    pub(super) is_gone: bool,
}

#[derive(Default)]
struct Lives {
    by_uid: BTreeMap<String, Life>,
    /// Who has a name now.
    uids: BTreeMap<String, String>,
    /// Why nothing more is heard.
    ended: Option<String>,
}

/// Hears of every version of every pod from the beginning.
pub(super) struct History(Arc<Mutex<Lives>>);

impl History {
    /// Of a control plane that was started with [`FLAGS`].
    pub(super) fn follow(plane: &ControlPlane) -> Result<Self, String> {
        let address = format!("http://{}", plane.addresses()[0]).parse().map_err(|error| format!("{error}"))?;
        let inside = plane.runtime.enter();
        let etcd = kube::Client::try_from(kube::Config::new(address)).map_err(|error| error.to_string())?;
        drop(inside);
        let text = |text: &str| ByteString(text.as_bytes().to_vec());
        // All keys with this prefix: up to the one after it.
        let range =
            json!({"key": text("/registry/pods/"), "range_end": text("/registry/pods0"), "start_revision": "1"});
        let request = http::Request::post("/v3/watch").body(json!({"create_request": range}).to_string().into_bytes());
        let request = request.map_err(|error| error.to_string())?;
        let lines = plane.runtime.block_on(etcd.request_stream(request)).map_err(|error| error.to_string())?;
        let lives = Arc::new(Mutex::new(Lives::default()));
        let told = lives.clone();
        // It ends with the runtime; an end before that is seen by whoever reads.
        plane.runtime.spawn(async move {
            let mut lines = lines.lines();
            let why = loop {
                let line = match lines.next().await {
                    Some(Ok(line)) => line,
                    Some(Err(error)) => break error.to_string(),
                    None => break "etcd ended its watch".to_owned(),
                };
                if let Err(error) = lock(&told).take_in(&line) {
                    break error;
                }
            };
            lock(&told).ended = Some(why);
        });
        Ok(Self(lives))
    }

    /// All lives by UID, as soon as they are known up to these versions.
    pub(super) fn up_to(&self, versions: &BTreeMap<String, u64>) -> Result<BTreeMap<String, Life>, String> {
        wait_for("what etcd has to tell", TOLD, || {
            let lives = lock(&self.0);
            if let Some(why) = &lives.ended {
                return Err(why.clone());
            }
            let known = |uid: &String| lives.by_uid.get(uid).map_or(0, |life| life.version);
            let all = versions.iter().all(|(uid, version)| known(uid) >= *version);
            Ok(all.then(|| lives.by_uid.clone()))
        })
    }
}

fn lock(lives: &Mutex<Lives>) -> MutexGuard<'_, Lives> {
    lives.lock().expect("nothing panics under it")
}

impl Lives {
    fn take_in(&mut self, line: &str) -> Result<(), String> {
        let mut line: Value = serde_json::from_str(line).map_err(|error| format!("{error} in etcd's {line:?}"))?;
        if line["error"].is_object() || line["result"]["canceled"] == true {
            return Err(format!("etcd says {line}"));
        }
        let Value::Array(events) = line["result"]["events"].take() else { return Ok(()) };
        for event in events {
            let bytes = |at: &Value| serde_json::from_value(at.clone()).map(|ByteString(bytes)| bytes);
            let kv = &event["kv"];
            let key = bytes(&kv["key"]).map_err(|error| error.to_string())?;
            let key = String::from_utf8_lossy(&key).into_owned();
            if event["type"] == "DELETE" {
                let uid = self.uids.remove(&key);
                if let Some(life) = uid.and_then(|uid| self.by_uid.get_mut(&uid)) {
                    life.is_gone = true;
                }
                continue;
            }
            let pod = bytes(&kv["value"]).map_err(|error| error.to_string())?;
            let pod: Value = serde_json::from_slice(&pod).map_err(|error| format!("{key} is no JSON: {error}"))?;
            let version = kv["mod_revision"].as_str().and_then(|text| text.parse().ok()).ok_or("no revision")?;
            self.saw(key, &pod, version);
        }
        Ok(())
    }

    fn saw(&mut self, key: String, pod: &Value, version: u64) {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let life = self.by_uid.entry(uid.clone()).or_default();
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if life.nodes.last().map_or("", String::as_str) != node {
            life.nodes.push(node.to_owned());
        }
        life.version = version;
        key.rsplit('/').next().unwrap_or_default().clone_into(&mut life.pod);
        self.uids.insert(key, uid);
    }
}
