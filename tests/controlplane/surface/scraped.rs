//! A real Prometheus scrapes the built binary as `deploy/overlays/monitoring` tells it to, and has something to say to every
//! rule and every panel of the dashboard there. Needs Debian's `prometheus`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::behaviour::effects::scenario;
use crate::support::cluster::{ControlPlane, READY, free_ports, wait_for};
use crate::support::process::Process;
use crate::support::stage::on_stage;
use crate::surface::deploy::{Manifests, SECOND, of_dashboards, of_rules, scraper, selectors};
use crate::surface::families::SCENARIOS;

/// Values of the dashboard's variables.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "1m"), ("$__interval", "1m"), ("$__range", "5m"), ("$job", "kube-scheduler-rs")];

/// A Prometheus and where it is asked.
struct Prometheus {
    process: Process,
    client: kube::Client,
}

/// Every expression of the rules and the dashboard finds data in a real Prometheus.
pub(crate) fn prometheus_finds_what_it_looks_for() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let overlay = Manifests::render(&plane, "overlays/monitoring")?;
    overlay.apply(&plane)?;
    let [port] = free_ports()?;
    let config = json!({
        "parallelism": 1, "percentageOfNodesToScore": 100,
        "leaderElection": {"leaderElect": true, "resourceName": "kube-scheduler"},
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    command
        .arg("--config")
        .arg(plane.write_config(config)?)
        .args(["--bind-address=127.0.0.1", "--secure-port"])
        .arg(port.to_string());
    // Who is asked about Prometheus's token.
    for flag in ["--authentication-kubeconfig", "--authorization-kubeconfig"] {
        command.arg(flag).arg(plane.scheduler_kubeconfig());
    }
    let mut scheduler = plane.run("scheduler", &mut command)?;
    // What Prometheus reads in place of the operator's kind.
    let rule = overlay.object("PrometheusRule", SECOND)?;
    let rules = plane.folder().join("rules.json");
    fs::write(&rules, rule["spec"].to_string()).map_err(|error| format!("{}: {error}", rules.display()))?;
    promtool(&["check", "rules", &rules.display().to_string()], "")?;
    let mut prometheus = Prometheus::start(&plane, &overlay, &rules, port)?;
    prometheus.wait_until_up(&plane, &mut scheduler)?;
    // Played again, every series has grown while it was looked at.
    for round in ["", "-again"] {
        for name in SCENARIOS {
            let scenario = scenario(name).ok_or_else(|| format!("no scenario {name}"))?;
            on_stage(&plane, &mut scheduler, &format!("{name}{round}"), scenario)
                .map_err(|error| format!("{error}; {}", scheduler.tail()))?;
        }
    }
    let (rules, _) = of_rules(rule);
    let panels = of_dashboards(overlay.object("ConfigMap", &format!("{SECOND}-dashboard"))?)?;
    let mut wanted: BTreeSet<String> = panels.iter().map(|panel| with_variables(panel)).collect();
    for rule in &rules {
        wanted.extend(selectors(rule).iter().map(|selector| of_any_code(selector)));
        // Whether an alert's condition holds is another matter; that it can be asked is enough.
        prometheus.query(&plane, rule)?;
    }
    if rules.is_empty() || panels.is_empty() {
        return Err("the overlay has no rules, or no dashboard".into());
    }
    let mut without = Vec::new();
    // All of it is there, or nothing of it comes any more.
    let found = wait_for("data for every expression", READY, || {
        without.clear();
        for expression in &wanted {
            if !has_data(&prometheus.query(&plane, expression)?) {
                without.push(expression.as_str());
            }
        }
        Ok(without.is_empty().then_some(()))
    });
    found.map_err(|error| format!("{error}: {}", without.join("\n")))?;
    println!("{} rules and {} queries of panels: {} expressions have data", rules.len(), panels.len(), wanted.len());
    prometheus.process.terminate()?;
    scheduler.terminate()?;
    plane.remove()?;
    Ok(())
}

/// Checks that promtool reports the same problems for our metrics as for upstream's.
pub(crate) fn compare_findings(theirs: &str, ours: &str) -> Result<(), String> {
    let (theirs, ours) = (findings(theirs)?, findings(ours)?);
    println!("promtool has {} findings with upstream's metrics, {} with ours", theirs.len(), ours.len());
    let more: Vec<&String> = ours.difference(&theirs).collect();
    if more.is_empty() { Ok(()) } else { Err(format!("promtool finds only with ours: {more:#?}")) }
}

fn findings(scrape: &str) -> Result<BTreeSet<String>, String> {
    // It ends with 3 if it has findings, which go to its errors.
    let (_, told) = run_promtool(&["check", "metrics"], scrape)?;
    Ok(told.lines().map(ToOwned::to_owned).collect())
}

fn promtool(arguments: &[&str], input: &str) -> Result<(), String> {
    let (succeeded, told) = run_promtool(arguments, input)?;
    if succeeded { Ok(()) } else { Err(format!("promtool {}: {told}", arguments.join(" "))) }
}

fn run_promtool(arguments: &[&str], input: &str) -> Result<(bool, String), String> {
    let failed = |error: std::io::Error| format!("promtool, of Debian's prometheus: {error}");
    let mut command = Command::new("promtool");
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    let told = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&told).into_owned()))
}

/// Whether an answer has a sample that is a number: a quantile of nothing is none.
fn has_data(answer: &Value) -> bool {
    answer["data"]["result"].as_array().into_iter().flatten().any(|sample| sample["value"][1] != "NaN")
}

/// What a selector is about where nothing fails: the same without the code of an answer.
fn of_any_code(selector: &str) -> String {
    let Some((name, labels)) = selector.split_once('{') else { return selector.to_owned() };
    let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.trim_start().starts_with("code"));
    format!("{name}{{{}}}", labels.collect::<Vec<_>>().join(","))
}

/// A query of a panel as it is asked here.
fn with_variables(query: &str) -> String {
    VARIABLES.iter().fold(query.to_owned(), |query, (variable, value)| query.replace(variable, value))
}

/// Where and how Prometheus scrapes, from the `ServiceMonitor` and the service that it selects.
fn scrape(overlay: &Manifests, port: u16, token: &Path) -> Result<Value, String> {
    let monitor = &overlay.object("ServiceMonitor", SECOND)?["spec"];
    let service = overlay.object("Service", SECOND)?;
    let labels = &service["metadata"]["labels"];
    let wanted = monitor["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
    if wanted.is_empty() || wanted.iter().any(|(name, value)| labels[name] != *value) {
        return Err("the ServiceMonitor does not select the service".to_owned());
    }
    let [endpoint] = monitor["endpoints"].as_array().map_or(&[][..], |endpoints| endpoints) else {
        return Err("the ServiceMonitor has not one endpoint".to_owned());
    };
    let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    if !ports.iter().any(|port| port["name"] == endpoint["port"]) {
        return Err(format!("the service has no port {}", endpoint["port"]));
    }
    let job = &labels[monitor["jobLabel"].as_str().unwrap_or_default()];
    if !job.is_string() || !endpoint["bearerTokenFile"].is_string() {
        return Err("the ServiceMonitor names no job or no token".to_owned());
    }
    Ok(json!({
        "job_name": job, "scheme": endpoint["scheme"], "metrics_path": endpoint["path"],
        "bearer_token_file": token,
        "tls_config": {"insecure_skip_verify": endpoint["tlsConfig"]["insecureSkipVerify"]},
        "static_configs": [{"targets": [format!("127.0.0.1:{port}")]}],
    }))
}

impl Prometheus {
    fn start(plane: &ControlPlane, overlay: &Manifests, rules: &Path, scheduler: u16) -> Result<Self, String> {
        let [port] = free_ports()?;
        let token = plane.folder().join("token");
        let (_, secret) = scraper(plane, overlay)?;
        fs::write(&token, secret).map_err(|error| format!("{}: {error}", token.display()))?;
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules], "scrape_configs": [scrape(overlay, scheduler, &token)?],
        });
        let path = plane.folder().join("prometheus.json");
        fs::write(&path, config.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
        promtool(&["check", "config", &path.display().to_string()], "")?;
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", path.display()));
        command.arg(format!("--storage.tsdb.path={}", plane.folder().join("prometheus").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).arg("--log.level=warn");
        let process = plane.run("prometheus", &mut command)?;
        let address = format!("http://127.0.0.1:{port}").parse().map_err(|error| format!("{error}"))?;
        let _inside = plane.runtime.enter();
        let client = kube::Client::try_from(kube::Config::new(address)).map_err(|error| error.to_string())?;
        Ok(Self { process, client })
    }

    /// Waits until it has scraped the scheduler.
    fn wait_until_up(&mut self, plane: &ControlPlane, scheduler: &mut Process) -> Result<(), String> {
        let up = wait_for("Prometheus to scrape", READY, || {
            for process in [&mut self.process, &mut *scheduler] {
                if let Some(status) = process.ended() {
                    return Err(format!("{} ended with {status}; {}", process.name, process.tail()));
                }
            }
            let up = self.query(plane, "up").ok();
            Ok(up.filter(|up| up["data"]["result"][0]["value"][1] == "1").map(drop))
        });
        up.map_err(|error| format!("{error}; {}; {}", self.process.tail(), scheduler.tail()))
    }

    fn query(&self, plane: &ControlPlane, expression: &str) -> Result<Value, String> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(expression, NON_ALPHANUMERIC));
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        let answer = plane.runtime.block_on(self.client.request(request));
        answer.map_err(|error| format!("{expression}: {error}"))
    }
}
