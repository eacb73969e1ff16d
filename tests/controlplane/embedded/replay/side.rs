//! One of the two servers, and what it has answered to the steps of a scenario.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body as HttpBody;
use kube_scheduler::apiserver::ApiServer;
use serde_json::{Value, json};

use super::script::{self, Action, Body, Call, Scenario, Set};

/// How long an answer or an event may take: a list of a version to come waits for three seconds.
const PATIENCE: Duration = Duration::from_secs(8);

/// How often our server is told that time has passed.
const TICK: Duration = Duration::from_millis(20);

/// How often something is asked until it has changed, each time some milliseconds.
const ATTEMPTS: usize = 2000;

/// What came back for a request, or from a watch.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The step that asked, and a word on which of its requests.
    pub(super) step: usize,
    pub(super) code: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

/// A server under test.
pub(super) struct Side {
    pub(super) client: kube::Client,
    /// Ours, which has to be told that time passes.
    pub(super) embedded: Option<ApiServer>,
    bases: Value,
}

type Lines = BoxStream<'static, Result<bytes::Bytes, String>>;

/// A watch that is open.
struct Watch {
    lines: Lines,
    read: Vec<u8>,
}

impl Side {
    pub(super) fn new(client: kube::Client, embedded: Option<ApiServer>) -> Self {
        let bases = serde_yaml::from_str(include_str!("bases.yaml")).expect("the plain objects are YAML");
        Self { client, embedded, bases }
    }

    /// Plays a scenario.
    pub(super) async fn play(&self, scenario: &Scenario, namespace: &str) -> Result<Vec<Answer>, String> {
        let mut stage = Stage {
            side: self,
            last: None,
            variables: BTreeMap::from([("ns".to_owned(), namespace.to_owned())]),
            watches: BTreeMap::new(),
            answers: Vec::new(),
        };
        self.make_namespace(namespace).await?;
        for (at, step) in scenario.steps.iter().enumerate() {
            stage
                .step(at, &step.action)
                .await
                .map_err(|error| format!("{}: {}: {error}", scenario.title, step.text))?;
        }
        Ok(stage.answers)
    }

    /// Makes a namespace for a scenario.
    pub(super) async fn make_namespace(&self, name: &str) -> Result<(), String> {
        let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
        let (code, ..) = self.send("POST", "/api/v1/namespaces", &[], made.into_bytes()).await?;
        if code == 201 { Ok(()) } else { Err(format!("making the namespace {name}: {code}")) }
    }

    /// Sends a request as it is.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<(u16, Vec<(String, String)>, Lines), String> {
        let path = path.replace(' ', "%20");
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(HttpBody::from(body)).map_err(|error| error.to_string())?;
        let response = self.patiently(self.client.send(request)).await?.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let mut kept = Vec::new();
        for name in ["content-type", "retry-after", "warning"] {
            for value in parts.headers.get_all(name) {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                // Advice on what is better written differently is the real server's alone, and whether it takes a directive
                // of a patch for a member depends on the order of a map.
                let is_member = !value.contains("$retainKeys");
                if name != "warning"
                    || is_member && (value.contains("unknown field") || value.contains("duplicate field"))
                {
                    kept.push((name.to_owned(), value));
                }
            }
        }
        let lines = body.into_data_stream().map(|chunk| chunk.map_err(|error| error.to_string()));
        Ok((parts.status.as_u16(), kept, lines.boxed()))
    }

    /// A request and the whole of its answer.
    pub(super) async fn ask(
        &self,
        step: usize,
        (method, path): (&str, &str),
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Answer, String> {
        let (code, headers, mut lines) = self.send(method, path, headers, body).await?;
        let mut bytes = Vec::new();
        while let Some(chunk) = self.patiently(lines.next()).await? {
            bytes.extend_from_slice(&chunk?);
        }
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Ok(Answer { step, code, headers, body })
    }

    /// Awaits something while time passes, but not for ever.
    async fn patiently<T>(&self, future: impl Future<Output = T>) -> Result<T, String> {
        let mut future = std::pin::pin!(future);
        let mut ticks = tokio::time::interval(TICK);
        let whole = async {
            loop {
                tokio::select! {
                    biased;
                    output = &mut future => return output,
                    _ = ticks.tick() => self.embedded.iter().for_each(ApiServer::tick),
                }
            }
        };
        tokio::time::timeout(PATIENCE, whole).await.map_err(|_| "no answer in time".to_owned())
    }
}

/// A scenario being played.
struct Stage<'a> {
    side: &'a Side,
    last: Option<&'a Call>,
    variables: BTreeMap<String, String>,
    watches: BTreeMap<String, Watch>,
    answers: Vec<Answer>,
}

impl<'a> Stage<'a> {
    async fn step(&mut self, at: usize, action: &'a Action) -> Result<(), String> {
        match action {
            Action::Send(call) => {
                self.last = Some(call);
                self.call(at, call).await
            }
            Action::Edit(path, sets) => self.edit(at, path, sets).await,
            Action::Watch(name, path) => self.watch(at, name, path).await,
            Action::Events(name, count) => self.events(at, name, *count).await,
            Action::Until((path, value)) => self.until(at, path, value).await,
            Action::Let(name, path) => {
                let body = &self.answers.last().ok_or("nothing was asked yet")?.body;
                let found = body.pointer(&format!("/{path}")).cloned().unwrap_or_default();
                let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                self.variables.insert(name.clone(), text);
                Ok(())
            }
        }
    }

    /// The text with the variables' values in it.
    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longer name first, of which another may be the beginning.
        let mut names: Vec<&String> = self.variables.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in names {
            text = text.replace(&format!("${name}"), &self.variables[name]);
        }
        text
    }

    fn yaml(&self, text: &str) -> Result<Value, String> {
        serde_yaml::from_str(&self.fill(text)).map_err(|error| format!("{text}: {error}"))
    }

    async fn call(&mut self, at: usize, call: &Call) -> Result<(), String> {
        let (kind, path) = script::resolve(&self.fill(&call.path), &self.variables["ns"]);
        let mut headers = call.headers.clone();
        let typed = |mut value: Value| {
            let wants = matches!(call.method, "POST" | "PUT") && value.is_object() && !path.contains("/pods/");
            if let Some(kind) = kind.filter(|_| wants) {
                for (key, text) in [("apiVersion", kind.api_version()), ("kind", kind.kind.to_owned())] {
                    if value.get(key).is_none() {
                        value[key] = json!(text);
                    }
                }
            }
            value
        };
        let body = match &call.body {
            Body::None => Vec::new(),
            Body::Raw(text) => self.fill(text).into_bytes(),
            Body::Object(text) => typed(self.yaml(text)?).to_string().into_bytes(),
            Body::Base(plural, name, sets) => {
                let plain = self.side.bases.get(plural).ok_or_else(|| format!("no plain object for {plural}"))?;
                let mut object = typed(self.yaml(&plain.to_string())?);
                if let Some(name) = name {
                    object["metadata"]["name"] = json!(self.fill(name));
                }
                self.apply(&mut object, sets)?;
                object.to_string().into_bytes()
            }
        };
        if !body.is_empty() && headers.iter().all(|(name, _)| name != "Content-Type") {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        headers.retain(|(_, value)| value != "none");
        let answer = self.side.ask(at, (call.method, &path), &headers, body).await?;
        self.answers.push(answer);
        Ok(())
    }

    fn apply(&self, object: &mut Value, sets: &[Set]) -> Result<(), String> {
        for (path, value) in sets {
            script::set(object, path, self.yaml(value)?);
        }
        Ok(())
    }

    /// Only what is answered in the end counts.
    async fn until(&mut self, at: usize, path: &str, value: &str) -> Result<(), String> {
        let (call, value) = (self.last.ok_or("nothing was asked yet")?, self.yaml(value)?);
        for _ in 0..ATTEMPTS {
            self.answers.pop();
            self.call(at, call).await?;
            let answer = self.answers.last().ok_or("no answer")?;
            if *answer.body.pointer(&format!("/{path}")).unwrap_or(&Value::Null) == value {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        Err(format!("{path} has never been {value}"))
    }

    async fn edit(&mut self, at: usize, path: &str, sets: &[Set]) -> Result<(), String> {
        let (_, path) = script::resolve(&self.fill(path), &self.variables["ns"]);
        let plain = path.split('?').next().unwrap_or_default().to_owned();
        let found = self.side.ask(at, ("GET", &plain), &[], Vec::new()).await?;
        let mut object = found.body.clone();
        self.answers.push(found);
        self.apply(&mut object, sets)?;
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let answer = self.side.ask(at, ("PUT", &path), &headers, object.to_string().into_bytes()).await?;
        self.answers.push(answer);
        Ok(())
    }

    async fn watch(&mut self, at: usize, name: &str, path: &str) -> Result<(), String> {
        let (_, path) = script::resolve(&self.fill(path), &self.variables["ns"]);
        let (code, headers, mut lines) = self.side.send("GET", &path, &[], Vec::new()).await?;
        let mut body = Value::Null;
        if code == 200 {
            self.watches.insert(name.to_owned(), Watch { lines, read: Vec::new() });
        } else {
            let mut bytes = Vec::new();
            while let Some(chunk) = self.side.patiently(lines.next()).await? {
                bytes.extend_from_slice(&chunk?);
            }
            body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        }
        self.answers.push(Answer { step: at, code, headers, body });
        Ok(())
    }

    async fn events(&mut self, at: usize, name: &str, count: Option<usize>) -> Result<(), String> {
        let Some(watch) = self.watches.get_mut(name) else {
            self.answers.push(Answer { step: at, code: 0, headers: Vec::new(), body: json!("no such watch") });
            return Ok(());
        };
        let mut seen = 0;
        while count.is_none_or(|count| seen < count) {
            let line = match watch.line(self.side).await {
                Ok(Some(line)) => line,
                Ok(None) => json!("the end"),
                Err(error) => json!(error),
            };
            let is_over = line.is_string();
            self.answers.push(Answer { step: at, code: 0, headers: Vec::new(), body: line });
            seen += 1;
            if is_over {
                break;
            }
        }
        Ok(())
    }
}

impl Watch {
    async fn line(&mut self, side: &Side) -> Result<Option<Value>, String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|error| error.to_string());
            }
            match side.patiently(self.lines.next()).await? {
                Some(chunk) => self.read.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    }
}
