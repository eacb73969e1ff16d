//! Runs containers as manifests say, by a small part of what a kubelet and a container runtime do: what the process finds in
//! its file system and environment, who it is, and the probes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, Process, free_ports, wait_for};
use crate::support::schedulers::client_of;
use crate::support::stage::Alive;

/// Folder of the service account in a container.
const SERVICE_ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// Where the image, and this machine, have the CAs that everybody knows.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// What the scheduler listens on unless it is told otherwise, and all manifests say.
const PORT: u64 = 10259;

/// How long a container may take to be ready: the first request waits for the informers of a slow machine.
const READY: Duration = Duration::from_mins(1);

/// A container that runs.
pub(super) struct Container {
    pub(super) process: Process,
    /// Where it listens in place of [`PORT`], which may be taken.
    pub(super) port: u16,
}

impl Alive for Container {
    fn ended(&mut self) -> Option<String> {
        self.process.ended().map(|status| format!("{status}; {}", self.process.tail()))
    }
}

impl Container {
    /// Starts the only container of a pod with this spec; `program` takes the place of what is in the image, and the scheduler's
    /// kubeconfig that of the host's.
    pub(super) fn start(plane: &ControlPlane, name: &str, spec: &Value, program: &Path) -> Result<Self, String> {
        let container = &spec["containers"][0];
        let root = plane.folder().join(format!("{name}.root"));
        // What the image has beside the program.
        let certificates = fs::read_to_string(format!("/{CERTIFICATES}")).unwrap_or_default();
        make(&root.join(CERTIFICATES).with_file_name(""))?;
        write(&root.join(CERTIFICATES), &certificates)?;
        let mut scratch = None;
        for mount in list(&container["volumeMounts"]) {
            let volume = list(&spec["volumes"]).find(|volume| volume["name"] == mount["name"]);
            let volume = volume.ok_or_else(|| format!("no volume for {mount}"))?;
            let path = text(&mount["mountPath"]);
            if volume["emptyDir"].is_object() && scratch.replace(path).is_some() {
                return Err("one folder that can be written to, not several".to_owned());
            }
            fill(plane, &root.join(&path[1..]), volume)?;
        }
        let namespace = "kube-system";
        if let Some(account) = spec["serviceAccountName"].as_str() {
            let folder = root.join(SERVICE_ACCOUNT);
            make(&folder)?;
            write(&folder.join("token"), &token(plane, namespace, account)?)?;
            write(&folder.join("namespace"), namespace)?;
            let ca = fs::read_to_string(plane.folder().join("apiserver/apiserver.crt"));
            write(&folder.join("ca.crt"), &ca.map_err(|error| error.to_string())?)?;
        }
        let [port] = free_ports()?;
        let mut command = isolated(spec, &root, program, scratch.ok_or("a folder for heap profiles")?)?;
        command.args(list(&container["command"]).map(text)).arg(format!("--secure-port={port}"));
        let [_, server] = plane.addresses();
        // As a kubelet sets them; the path is the script's.
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("KUBERNETES_SERVICE_HOST", server.ip().to_string());
        command.env("KUBERNETES_SERVICE_PORT", server.port().to_string());
        Ok(Self { process: plane.run(name, &mut command)?, port })
    }

    /// Probes it until it has started, lives and is ready.
    pub(super) fn wait_ready(&mut self, plane: &ControlPlane, spec: &Value) -> Result<(), String> {
        let container = &spec["containers"][0];
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let get = &container[probe]["httpGet"];
            let port = list(&container["ports"]).find(|port| port["name"] == get["port"]);
            if get["scheme"] != "HTTPS" || port.is_none_or(|port| port["containerPort"] != PORT) {
                return Err(format!("{probe}: {get}"));
            }
            let path = text(&get["path"]);
            wait_for(&format!("{probe} {path}"), READY, || match self.ended() {
                Some(why) => Err(why),
                None => Ok(self.get(plane, path, None).ok().filter(|said| said == "ok")),
            })
            .map_err(|error| format!("{error}; {}", self.process.tail()))?;
        }
        Ok(())
    }

    /// What it answers to somebody with this token, or to nobody in particular.
    pub(super) fn get(&self, plane: &ControlPlane, path: &str, token: Option<&str>) -> Result<String, String> {
        let mut request = Request::get(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Vec::new()).map_err(|error| error.to_string())?;
        let client = client_of(plane, self.port)?;
        plane.runtime.block_on(client.request_text(request)).map_err(|error| error.to_string())
    }

    /// Tells it to end, which a scheduler that elects does with 0.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let status = self.process.terminate()?;
        if status.success() { Ok(()) } else { Err(format!("ended with {status}; {}", self.process.tail())) }
    }
}

/// The command that has the rest of its arguments run as the manifest wants it, which has to want what is claimed of it.
fn isolated(spec: &Value, root: &Path, program: &Path, scratch: &str) -> Result<Command, String> {
    let (pod, own) = (&spec["securityContext"], &spec["containers"][0]["securityContext"]);
    let expected =
        json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}});
    let same = expected.as_object().into_iter().flatten().all(|(key, value)| own[key] == *value);
    if !same || pod["seccompProfile"]["type"] != "RuntimeDefault" {
        return Err(format!("a security context with less: {pod} {own}"));
    }
    let user = [&own["runAsUser"], &pod["runAsUser"]].into_iter().find_map(Value::as_u64).ok_or("a user")?;
    if (pod["runAsNonRoot"] == true) != (user != 0) {
        return Err(format!("runAsNonRoot as user {user}"));
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/surface/deploy/pod.sh");
    let mut command = Command::new("unshare");
    command.arg("--mount").args(if is_root { None } else { Some("--map-root-user") });
    command.arg("sh").arg(script).arg(root).arg(program);
    command.arg(if is_root { user.to_string() } else { String::new() }).arg(scratch);
    Ok(command)
}

/// Puts into a container's file system what a volume has.
fn fill(plane: &ControlPlane, path: &Path, volume: &Value) -> Result<(), String> {
    if let Some(name) = volume["configMap"]["name"].as_str() {
        make(path)?;
        let map = plane.get(&format!("/api/v1/namespaces/kube-system/configmaps/{name}"))?;
        let map: Value = serde_json::from_str(&map).map_err(|error| error.to_string())?;
        let files = map["data"].as_object().ok_or_else(|| format!("ConfigMap {name} is empty"))?;
        return files.iter().try_for_each(|(file, content)| write(&path.join(file), text(content)));
    }
    match volume["hostPath"]["path"].as_str() {
        None => make(path),
        // As kubeadm has it: for root alone, who owns it.
        Some("/etc/kubernetes/scheduler.conf") => {
            make(path.parent().unwrap_or(path))?;
            let file = fs::read_to_string(plane.scheduler_kubeconfig()).map_err(|error| error.to_string())?;
            write(path, &file)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|error| error.to_string())
        }
        Some(other) => Err(format!("the host has no {other}")),
    }
}

/// A token of a service account, as a kubelet asks for it.
pub(super) fn token(plane: &ControlPlane, namespace: &str, account: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let request = Request::builder().method(Method::POST).uri(&path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).map_err(|error| error.to_string())?;
    let answer: Result<Value, _> = plane.runtime.block_on(plane.client.request(request));
    let answer = answer.map_err(|error| format!("{path}: {error}"))?;
    answer["status"]["token"].as_str().map(str::to_owned).ok_or_else(|| format!("{path}: {answer}"))
}

/// The elements of a list, which may be missing.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, which may be missing.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, content: &str) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}
