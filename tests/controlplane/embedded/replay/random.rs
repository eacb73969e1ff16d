//! Random pods and nodes with random changes, valid and invalid, asked of both servers: creates, patches of three types,
//! updates, lists with selectors, bindings, deletes.
//!
//! A case is decided by its seed. What the cases reach is counted, and what they have to reach is listed.

use std::collections::BTreeMap;

use kube_scheduler::clock::Rng;
use serde_json::{Value, json};

use super::script::set;
use super::side::{Answer, Side};
use crate::parity::case::Case;
use crate::parity::generate;

/// Members that are set to one of these values, good or bad.
const POD_CHANGES: &[(&str, &str)] = &[
    ("metadata/labels", r#"{"app": "web"}"#),
    ("metadata/labels", r#"{"app": "two words"}"#),
    ("metadata/annotations", r#"{"note": "x"}"#),
    ("metadata/finalizers", r#"["example.com/x"]"#),
    ("metadata/finalizers", "null"),
    ("metadata/resourceVersion", r#""1""#),
    ("metadata/resourceVersion", r#""1""#),
    ("metadata/resourceVersion", r#""1""#),
    ("spec/nodeName", r#""node-1""#),
    ("spec/schedulerName", r#""other""#),
    ("spec/priority", "7"),
    ("spec/priority", r#""high""#),
    ("spec/priorityClassName", r#""system-node-critical""#),
    ("spec/priorityClassName", r#""missing""#),
    ("spec/schedulingGates", r#"[{"name": "a"}]"#),
    ("spec/schedulingGates", r#"[{"name": "a"}, {"name": "a"}]"#),
    ("spec/schedulingGates", "null"),
    ("spec/nodeSelector", r#"{"disk": "ssd"}"#),
    ("spec/nodeSelector", r#"{"disk": 5}"#),
    ("spec/hostNetwork", "true"),
    ("spec/terminationGracePeriodSeconds", "-3"),
    ("spec/terminationGracePeriodSeconds", "0"),
    ("spec/activeDeadlineSeconds", "30"),
    ("spec/activeDeadlineSeconds", "0"),
    ("spec/restartPolicy", r#""Sometimes""#),
    ("spec/overhead", r#"{"cpu": "1"}"#),
    ("spec/tolerations", r#"[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]"#),
    ("spec/tolerations", r#"[{"key": "a", "operator": "Exists", "value": "b"}]"#),
    (
        "spec/affinity",
        r#"{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}"#,
    ),
    ("spec/affinity", "null"),
    ("spec/topologySpreadConstraints", r#"[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Never"}]"#),
    ("spec/containers/0/image", r#""registry.example/other:v2""#),
    ("spec/containers/0/image", r#""""#),
    ("spec/containers/0/name", r#""Bad""#),
    ("spec/containers/0/resources", r#"{"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}"#),
    ("spec/containers/0/resources", r#"{"limits": {"cpu": 0.25, "memory": "1e3"}}"#),
    ("spec/containers/0/resources", r#"{"requests": {"example.com/gpu": "1"}}"#),
    (
        "spec/containers/0/ports",
        r#"[{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 8080}]"#,
    ),
    ("spec/containers", "[]"),
    ("spec/unknownMember", "1"),
];

const NODE_CHANGES: &[(&str, &str)] = &[
    ("metadata/labels", r#"{"zone": "a"}"#),
    ("metadata/labels", r#"{"zone": ["a"]}"#),
    ("metadata/annotations", r#"{"a b": "c"}"#),
    ("metadata/resourceVersion", r#""1""#),
    ("metadata/resourceVersion", r#""1""#),
    ("metadata/resourceVersion", r#""1""#),
    ("metadata/resourceVersion", r#""1""#),
    ("spec/unschedulable", "true"),
    ("spec/unschedulable", "false"),
    ("spec/taints", r#"[{"key": "a", "effect": "NoSchedule"}]"#),
    ("spec/taints", r#"[{"key": "a", "effect": "Sometimes"}]"#),
    ("spec/taints", r#"[{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]"#),
    ("spec/taints", "null"),
    ("spec/podCIDR", r#""10.1.0.0/24""#),
    ("status/capacity", r#"{"cpu": "8", "memory": "16Gi"}"#),
    ("status/allocatable", r#"{"cpu": "-1"}"#),
    ("status/allocatable", r#"{"cpu": 7.5, "example.com/gpu": "2"}"#),
    ("status/conditions", r#"[{"type": "Ready", "status": "True"}]"#),
    ("spec/unknownMember", "1"),
];

/// Selectors for lists, of which the last ones are none.
const SELECTORS: &[&str] = &[
    "labelSelector=app",
    "labelSelector=app=web",
    "labelSelector=app%20notin%20(web)",
    "fieldSelector=spec.nodeName=",
    "fieldSelector=spec.nodeName=node-1",
    "fieldSelector=status.phase=Pending",
    "fieldSelector=metadata.name!=pending-0",
    "limit=2",
    "labelSelector=app%20in%20web",
    "fieldSelector=spec.nodeSelector=x",
];

/// What a case asks for.
struct Request {
    verb: &'static str,
    plural: &'static str,
    /// After the plural name: `/name/subresource?query`.
    rest: String,
    content_type: &'static str,
    body: Value,
}

/// How often each kind of answer came.
#[derive(Default)]
pub(super) struct Reached(BTreeMap<String, usize>);

impl Reached {
    fn count(&mut self, request: &Request, answer: &Answer) {
        let reason = answer.body["reason"].as_str().filter(|_| answer.code >= 400).unwrap_or_default();
        let key = format!("{} {} {} {reason}", request.verb, request.plural, answer.code);
        *self.0.entry(key.trim_end().to_owned()).or_default() += 1;
    }

    /// What was never reached of what has to be.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        MUST.iter().copied().filter(|key| !self.0.contains_key(*key)).collect()
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(key, count)| format!("{key}: {count}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// What the default number of cases has to reach.
const MUST: &[&str] = &[
    "create pods 201",
    "create pods 400 BadRequest",
    "create pods 403 Forbidden",
    "create pods 409 AlreadyExists",
    "create pods 422 Invalid",
    "create nodes 201",
    "create nodes 400 BadRequest",
    "create nodes 422 Invalid",
    "json pods 200",
    "json pods 422 Invalid",
    "merge pods 200",
    "merge pods 409 Conflict",
    "merge pods 422 Invalid",
    "smp pods 200",
    "smp pods 422 Invalid",
    "merge nodes 200",
    "merge nodes 422 Invalid",
    "smp nodes 200",
    "json nodes 200",
    "bind pods 201",
    "bind pods 409 Conflict",
    "list pods 200",
    "list pods 400 BadRequest",
    "delete pods 200",
    "delete pods 404 NotFound",
    "delete nodes 200",
    "get pods 200",
    "get pods 404 NotFound",
];

/// A source of requests.
struct Maker {
    rng: Rng,
    pods: Vec<Value>,
    nodes: Vec<Value>,
    prefix: String,
}

impl Maker {
    fn new(seed: u64, namespace: &str) -> Self {
        let case = generate::case(seed);
        let mut maker = Self {
            rng: Rng::from_seed(seed),
            pods: objects(&case, "Pod"),
            nodes: objects(&case, "Node"),
            prefix: namespace.to_owned(),
        };
        for object in maker.pods.iter_mut().chain(&mut maker.nodes) {
            let members = object["metadata"].as_object_mut().expect("objects have metadata");
            members.remove("uid");
            members.remove("namespace");
        }
        // Few, so that what is asked for and what is there often meet; priority and overhead are for admission to give.
        // Those that run come first, those that wait last.
        let waiting = maker.pods.split_off(maker.pods.len().saturating_sub(2));
        maker.pods.truncate(1);
        maker.pods.extend(waiting);
        maker.nodes.truncate(2);
        for pod in &mut maker.pods {
            let spec = pod["spec"].as_object_mut().expect("pods have a specification");
            for given in ["priority", "overhead", "preemptionPolicy", "runtimeClassName"] {
                spec.remove(given);
            }
        }
        for node in &mut maker.nodes {
            let name = format!("{}-{}", maker.prefix, node["metadata"]["name"].as_str().unwrap_or_default());
            node["metadata"]["name"] = json!(name);
        }
        maker
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.rng.index(from.len())]
    }

    /// An object of the case, changed here and there.
    fn object(&mut self, is_pod: bool) -> Value {
        let all = if is_pod { self.pods.clone() } else { self.nodes.clone() };
        let mut object = self.pick(&all).clone();
        for _ in 0..self.rng.index(3) {
            let (path, value) = self.change(is_pod);
            set(&mut object, path, value);
        }
        object
    }

    fn change(&mut self, is_pod: bool) -> (&'static str, Value) {
        let (path, value) = *self.pick(if is_pod { POD_CHANGES } else { NODE_CHANGES });
        (path, serde_json::from_str(value).expect("changes are JSON"))
    }

    /// The next request about pods or nodes.
    fn request(&mut self) -> Request {
        let is_pod = self.rng.chance(2, 3);
        let plural = if is_pod { "pods" } else { "nodes" };
        let object = self.object(is_pod);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let plain =
            |verb, rest: String| Request { verb, plural, rest, content_type: "application/json", body: Value::Null };
        match self.rng.index(15) {
            0..=3 => Request { body: object, ..plain("create", String::new()) },
            4..=7 => self.patch(plural, is_pod, &name),
            8 => plain("get", format!("/{name}")),
            9 => {
                let mut selector = (*self.pick(SELECTORS)).to_owned();
                // Nodes of other cases are there, too.
                if !is_pod {
                    selector = format!("fieldSelector=metadata.name={name}");
                }
                plain("list", format!("?{selector}"))
            }
            10..=12 if is_pod => {
                let target = json!({"kind": "Node", "name": format!("{}-node-1", self.prefix)});
                let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
                Request { body, ..plain("bind", format!("/{name}/binding")) }
            }
            13 => plain("delete", format!("/{name}")),
            _ => plain("delete", format!("/{name}?gracePeriodSeconds=0")),
        }
    }

    /// A patch of one of the three types, of the object or its status.
    fn patch(&mut self, plural: &'static str, is_pod: bool, name: &str) -> Request {
        let (path, value) = self.change(is_pod);
        let sub = if path.starts_with("status/") { "/status" } else { "" };
        // A merge patch replaces lists whole.
        let parts: Vec<&str> = path.split("/0/").collect();
        let mut merge = json!({});
        match parts.as_slice() {
            [list, member] => set(&mut merge, list, json!([{"name": "c0", *member: value}])),
            _ if value.is_null() => {
                let (parent, member) = path.rsplit_once('/').expect("changes are below a member");
                set(&mut merge, parent, json!({member: null}));
            }
            _ => set(&mut merge, path, value.clone()),
        }
        let (verb, content_type, body) = match self.rng.index(3) {
            0 => ("merge", "application/merge-patch+json", merge),
            1 => ("smp", "application/strategic-merge-patch+json", merge),
            _ => {
                let operation = if value.is_null() {
                    json!([{"op": "remove", "path": format!("/{path}")}])
                } else {
                    json!([{"op": "add", "path": format!("/{path}"), "value": value}])
                };
                ("json", "application/json-patch+json", operation)
            }
        };
        Request { verb, plural, rest: format!("/{name}{sub}"), content_type, body }
    }
}

fn objects(case: &Case, kind: &str) -> Vec<Value> {
    case.objects.iter().filter(|object| object["kind"] == kind).cloned().collect()
}

/// The requests of a case, as steps are called in reports.
pub(super) fn texts(seed: u64, namespace: &str, count: usize) -> Vec<String> {
    let mut maker = Maker::new(seed, namespace);
    (0..count)
        .map(|_| {
            let Request { verb, plural, rest, body, .. } = maker.request();
            format!("seed {seed}: {verb} {plural}{rest} {body}")
        })
        .collect()
}

/// Asks a server a case's requests.
pub(super) async fn play(
    side: &Side,
    seed: u64,
    namespace: &str,
    count: usize,
    reached: &mut Reached,
) -> Result<Vec<Answer>, String> {
    side.make_namespace(namespace).await?;
    let mut maker = Maker::new(seed, namespace);
    let mut answers = Vec::new();
    for step in 0..count {
        let request = maker.request();
        let method = match request.verb {
            "create" | "bind" => "POST",
            "get" | "list" => "GET",
            "delete" => "DELETE",
            _ => "PATCH",
        };
        let scope = if request.plural == "pods" { format!("namespaces/{namespace}/") } else { String::new() };
        let path = format!("/api/v1/{scope}{}{}", request.plural, request.rest);
        let body = if request.body.is_null() { Vec::new() } else { request.body.to_string().into_bytes() };
        let headers = [("Content-Type".to_owned(), request.content_type.to_owned())];
        let answer = side.ask(step, (method, &path), &headers[..usize::from(!body.is_empty())], body).await?;
        reached.count(&request, &answer);
        answers.push(answer);
    }
    Ok(answers)
}
