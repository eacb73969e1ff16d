//! Normal form of a response body: all of it where it can be equal, and the layout where numbers, times and lists differ.

use std::collections::BTreeSet;
use std::io::Read as _;

use serde_json::Value;

use crate::support::client::Got;

/// The part of a body that both have to have.
pub(super) fn shape(method: &str, path: &str, got: &Got) -> String {
    let body = unzipped(got);
    let text = String::from_utf8_lossy(&body).into_owned();
    let kind = got.header("content-type").unwrap_or_default();
    let page = path.split('?').next().unwrap_or_default();
    if got.status != 200 || method == "DELETE" && page.starts_with("/metrics") {
        return if kind == "application/yaml" { yaml(&text) } else { text };
    }
    match page {
        // Who serves what besides is another matter; that these are there, and that it is in this form, is this one.
        "/metrics" => {
            samples(&text, &["authenticated_user_requests", "authentication_attempts", "authorization_attempts_total"])
        }
        "/metrics/slis" if kind.starts_with("text/plain") => numbers_aside(&text),
        // Profiles, and metrics in protobuf, are read by other tests; what lists profiles is in each one's own words.
        "/metrics/slis" | "/debug/pprof/" | "/debug/pprof/goroutine" | "/debug/pprof/heap" => {
            (!body.is_empty()).to_string()
        }
        // Nothing is scheduled here, and a map has no order.
        "/configz" => members(&text),
        "/flagz" if kind.starts_with("text/plain") => letters(&text),
        "/statusz" => {
            let text = if kind.starts_with("application/") { yaml(&text) } else { text };
            letters(&text)
        }
        _ if kind.starts_with("application/yaml") => yaml(&text),
        _ => text,
    }
}

fn unzipped(got: &Got) -> Vec<u8> {
    if got.header("content-encoding") != Some("gzip") {
        return got.body.to_vec();
    }
    let mut body = Vec::new();
    match flate2::read::GzDecoder::new(&got.body[..]).read_to_end(&mut body) {
        Ok(_) => body,
        Err(error) => error.to_string().into_bytes(),
    }
}

/// The object in a text of YAML or JSON, its members in order: where lines are folded is the writer's.
fn yaml(text: &str) -> String {
    serde_yaml::from_str::<Value>(text).map_or_else(|error| error.to_string(), |value| value.to_string())
}

/// The members of what `componentconfig` holds.
fn members(text: &str) -> String {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return error.to_string(),
    };
    let config = &value["componentconfig"];
    let names: BTreeSet<&String> = config.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    format!("{names:?} {} {}", config["kind"], config["apiVersion"])
}

/// The letters of a text: numbers and what separates are left out.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphabetic() || matches!(letter, '\n' | '/' | '{' | '}' | '"')).collect()
}

/// The lines of metrics without their values, and without failures: a scheduler that is starting has some or none.
fn numbers_aside(text: &str) -> String {
    let name = |line: &str| match line.rsplit_once(' ') {
        Some((name, _)) if !line.starts_with('#') => name.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = text.lines().filter(|line| !line.contains("status=\"error\"")).map(name).collect();
    lines.join("\n")
}

/// Which of these families a text has, and that each of its lines is one of metrics.
fn samples(text: &str, families: &[&str]) -> String {
    let is_line = |line: &str| {
        line.starts_with("# HELP ")
            || line.starts_with("# TYPE ")
            || line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok() || value == "+Inf")
    };
    let strange = text.lines().find(|line| !is_line(line)).unwrap_or_default();
    let known: Vec<bool> = families.iter().map(|name| text.contains(&format!("# TYPE {name} counter\n"))).collect();
    format!("{known:?} {strange}")
}
