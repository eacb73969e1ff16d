//! The embedded API server held to the real one: the same requests to both, the answers compared.

mod discovery;
mod normal;
mod random;
mod script;
mod side;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::Clock;
use libtest_mimic::Failed;

use crate::parity::clusters::from_environment;
use crate::support::cluster::ControlPlane;
use crate::support::programs::program;
use normal::{differences, normalise};
use random::Reached;
use script::{Scenario, Step};
use side::{Answer, Side};

/// The scripts by topic.
const SCRIPTS: [(&str, &str); 11] = [
    ("create", include_str!("replay/scripts/create.txt")),
    ("pods", include_str!("replay/scripts/pods.txt")),
    ("kinds", include_str!("replay/scripts/kinds.txt")),
    ("admission", include_str!("replay/scripts/admission.txt")),
    ("update", include_str!("replay/scripts/update.txt")),
    ("binding", include_str!("replay/scripts/binding.txt")),
    ("eviction", include_str!("replay/scripts/eviction.txt")),
    ("delete", include_str!("replay/scripts/delete.txt")),
    ("list", include_str!("replay/scripts/list.txt")),
    ("watch", include_str!("replay/scripts/watch.txt")),
    ("events", include_str!("replay/scripts/events.txt")),
];

/// Differences that are printed whole.
const SHOWN: usize = 40;

/// What the embedded server knows of the API's types.
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/apiserver/schema/types.txt");

/// Random cases unless `KS_CASES` says otherwise, and requests a case.
const CASES: u64 = 40;
const REQUESTS: usize = 40;

/// Both servers.
struct Pair {
    theirs: Side,
    ours: Side,
    clock: Clock,
}

/// Plays all scripts on both servers. `KS_REPLAY` picks those whose file or title has it in its name.
pub(crate) fn embedded_server_responds_as_the_real_one() -> Result<(), Failed> {
    schema_is_upstreams()?;
    let plane = ControlPlane::start()?;
    let asked_for = std::env::var("KS_REPLAY").ok();
    let picked = asked_for.clone().unwrap_or_default();
    let (mut asked, mut wrong) = (0, Vec::new());
    {
        let _inside = plane.runtime.enter();
        let clock = Clock::real();
        let server = ApiServer::new(Options::by_clock(&clock));
        let ours = Side::new(server.client(), Some(server));
        let theirs = Side::new(plane.runtime.block_on(patient_client(&plane))?, None);
        let pair = Pair { theirs, ours, clock };
        for (file, text) in SCRIPTS {
            for (at, scenario) in script::parse(text).iter().enumerate() {
                if file.contains(&picked) || scenario.title.contains(&picked) {
                    let namespace = format!("{file}-{at}");
                    asked += plane.runtime.block_on(pair.compare(scenario, &namespace, &mut wrong))?;
                }
            }
        }
        if "discovery".contains(&picked) {
            asked += plane.runtime.block_on(pair.discover(&mut wrong))?;
        }
        if "random".contains(&picked) {
            asked += pair.random(&plane, &mut wrong)?;
        }
    }
    plane.remove()?;
    println!("{asked} answers compared");
    if wrong.is_empty() {
        return Ok(());
    }
    let count = wrong.len();
    wrong.truncate(if asked_for.is_none() { SHOWN } else { usize::MAX });
    Err(format!("{count} of {asked} answers differ:\n\n{}", wrong.join("\n\n")).into())
}

/// The embedded server's knowledge of types is what upstream's types say; with `KS_RECORD` it is recorded anew.
fn schema_is_upstreams() -> Result<(), Failed> {
    let output = Command::new(program("schema")).output().map_err(|error| format!("schema: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if std::env::var("KS_RECORD").is_ok() {
        return fs::write(SCHEMA, text.as_bytes()).map_err(|error| format!("{SCHEMA}: {error}").into());
    }
    let known = fs::read_to_string(SCHEMA).map_err(|error| format!("{SCHEMA}: {error}"))?;
    if known == text { Ok(()) } else { Err(format!("{SCHEMA} is not what upstream's types say").into()) }
}

/// A client that shows every answer, where the usual one asks again after some.
async fn patient_client(plane: &ControlPlane) -> Result<kube::Client, Failed> {
    let file = Kubeconfig::read_from(plane.kubeconfig()).map_err(|error| error.to_string())?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    config.default_retry = false;
    Ok(kube::Client::try_from(config).map_err(|error| error.to_string())?)
}

impl Pair {
    /// Asks both the same random requests, and checks that they reach what there is to reach.
    fn random(&self, plane: &ControlPlane, wrong: &mut Vec<String>) -> Result<usize, Failed> {
        let (first, cases) =
            (from_environment("KS_SEED")?.unwrap_or(0), from_environment("KS_CASES")?.unwrap_or(CASES));
        let (mut asked, mut reached) = (0, Reached::default());
        for seed in first..first + cases {
            let namespace = format!("random-{seed}");
            let theirs =
                plane.runtime.block_on(random::play(&self.theirs, seed, &namespace, REQUESTS, &mut reached))?;
            let ours = plane.runtime.block_on(random::play(
                &self.ours,
                seed,
                &namespace,
                REQUESTS,
                &mut Reached::default(),
            ))?;
            let texts = random::texts(seed, &namespace, REQUESTS);
            asked += theirs.len();
            for (step, found) in self.differences(theirs, ours) {
                if !found.is_empty() {
                    wrong.push(format!("{}\n{}", texts[step], found.join("\n")));
                    // What follows may follow from it.
                    break;
                }
            }
        }
        println!("random requests: {reached}");
        // The cases that are played by default reach it all; of others it takes many.
        let reaches_all = (first == 0 && cases >= CASES) || cases >= 10 * CASES;
        let missing = if reaches_all { reached.missing() } else { Vec::new() };
        if !missing.is_empty() {
            wrong.push(format!("never reached: {}", missing.join(", ")));
        }
        Ok(asked)
    }

    /// Where the answers of both differ, by step.
    fn differences(&self, mut theirs: Vec<Answer>, mut ours: Vec<Answer>) -> BTreeMap<usize, Vec<String>> {
        let now = self.clock.now().wall;
        let codes = |answers: &[Answer]| answers.iter().map(|answer| answer.code).collect::<Vec<_>>();
        let (their_codes, our_codes) = (codes(&theirs), codes(&ours));
        normalise(&mut theirs, now, |at| their_codes.get(at) != our_codes.get(at));
        normalise(&mut ours, now, |at| their_codes.get(at) != our_codes.get(at));
        let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for at in 0..theirs.len().max(ours.len()) {
            let step = theirs.get(at).or(ours.get(at)).map_or(0, |answer| answer.step);
            found.entry(step).or_default().extend(match (theirs.get(at), ours.get(at)) {
                (Some(theirs), Some(ours)) => answers_differ(theirs, ours),
                (theirs, ours) => vec![format!("  real: {theirs:?}\n  ours: {ours:?}")],
            });
        }
        found
    }

    /// Plays a scenario on both, and notes where the answers differ.
    async fn compare(&self, scenario: &Scenario, namespace: &str, wrong: &mut Vec<String>) -> Result<usize, Failed> {
        let theirs = self.theirs.play(scenario, namespace).await?;
        let ours = self.ours.play(scenario, namespace).await?;
        let asked = theirs.len();
        for (step, found) in self.differences(theirs, ours) {
            let Step { text, is_open, .. } = &scenario.steps[step];
            if *is_open && found.is_empty() {
                wrong.push(format!("{}: {text}\nis marked as a difference, and is none", scenario.title));
            } else if !is_open && !found.is_empty() {
                wrong.push(format!("{}: {text}\n{}", scenario.title, found.join("\n")));
            }
        }
        Ok(asked)
    }
}

fn answers_differ(theirs: &Answer, ours: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    if theirs.step != ours.step {
        found.push("one server has given more answers than the other".to_owned());
    }
    if theirs.code != ours.code {
        let shown = |answer: &Answer| {
            let message = answer.body["message"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
            let shown: String = message.chars().take(if answer.code < 400 { 150 } else { 2000 }).collect();
            format!("{} {shown}", answer.code)
        };
        return vec![format!("  real: {}\n  ours: {}", shown(theirs), shown(ours))];
    }
    if theirs.headers != ours.headers {
        found.push(format!("headers\n  real: {:?}\n  ours: {:?}", theirs.headers, ours.headers));
    }
    differences("", &theirs.body, &ours.body, &mut found);
    found
}
