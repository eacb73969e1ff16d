//! A report as tables for people.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use super::report::{NodeReport, PodReport, Report};

/// Two spaces stand between columns.
const GAP: usize = 2;

/// Prints rows in columns, as `kubectl get` does: as wide as their widest cell, the last one as it is.
fn columns(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:<width$}", width = width + GAP)?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

fn pod_row(pod: &PodReport, nodes: &BTreeSet<&str>) -> Vec<String> {
    let (node, reason) = match (&pod.node, &pod.reason) {
        (Some(node), _) if !nodes.contains(node.as_str()) => (node.clone(), "there is no such node".to_owned()),
        (Some(node), _) => (node.clone(), if pod.was_placed { "was there".to_owned() } else { String::new() }),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("Pending");
            let message = pod.message.as_deref().unwrap_or_default();
            let text = if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
            ("-".to_owned(), text)
        }
    };
    vec![pod.namespace.clone(), pod.name.clone(), node, reason]
}

fn node_row(node: &NodeReport) -> Vec<String> {
    let mut row = vec![node.name.clone()];
    for resource in ["cpu", "memory", "pods"] {
        let amount = |amounts: &std::collections::BTreeMap<String, String>| {
            amounts.get(resource).map_or("0", String::as_str).to_owned()
        };
        row.push(format!("{} → {} of {}", amount(&node.before), amount(&node.after), amount(&node.allocatable)));
    }
    let others: Vec<String> = node
        .allocatable
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "cpu" | "memory" | "pods"))
        .filter(|(name, _)| node.before.contains_key(*name) || node.after.contains_key(*name))
        .map(|(name, all)| {
            let amount = |amounts: &std::collections::BTreeMap<String, String>| {
                amounts.get(name).map_or("0", String::as_str).to_owned()
            };
            format!("{name} {} → {} of {all}", amount(&node.before), amount(&node.after))
        })
        .collect();
    row.push(others.join(", "));
    row
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let pods = std::iter::once(header(&["NAMESPACE", "POD", "NODE", "REASON"]));
        let names: BTreeSet<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        columns(f, &pods.chain(self.pods.iter().map(|pod| pod_row(pod, &names))).collect::<Vec<_>>())?;
        writeln!(f)?;
        let nodes = std::iter::once(header(&["NODE", "CPU", "MEMORY", "PODS", "OTHER"]));
        columns(f, &nodes.chain(self.nodes.iter().map(node_row)).collect::<Vec<_>>())?;
        if let Some(events) = &self.events {
            writeln!(f)?;
            let rows = std::iter::once(header(&["TIME", "TYPE", "REASON", "OBJECT", "NOTE"]));
            let events = events.iter().map(|event| {
                let times = event.count.map_or(String::new(), |count| format!(" (x{count})"));
                let note = format!("{}{times}", event.note);
                vec![event.time.clone(), event.r#type.clone(), event.reason.clone(), event.object.clone(), note]
            });
            columns(f, &rows.chain(events).collect::<Vec<_>>())?;
        }
        let totals = &self.totals;
        writeln!(f)?;
        writeln!(
            f,
            "{} placed, {} pending, {} already there, on {}; the last one was placed after {:.1} s of virtual time",
            count(totals.placed, "pod"),
            totals.pending,
            totals.already_placed,
            count(totals.nodes, "node"),
            totals.virtual_seconds,
        )
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
