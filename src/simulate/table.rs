//! Reports as readable tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use super::report::{NodeReport, PodReport, Report};
use crate::k8s::Quantity;
use crate::model::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

/// Number of spaces between columns.
const GAP: usize = 2;

/// Length of the amount `16383Mi`. Longer amounts of bytes are rounded.
const LONGEST_BYTES: usize = 7;

/// Writes rows in columns like `kubectl get`. Each column is as wide as its widest cell, and the last one is not padded.
pub(crate) fn columns(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
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
        (Some(node), _) if !nodes.contains(node.as_str()) => (node.clone(), "node does not exist".to_owned()),
        (Some(node), _) => (node.clone(), if pod.was_placed { "already placed".to_owned() } else { String::new() }),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("Pending");
            let message = pod.message.as_deref().unwrap_or_default();
            let text = if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
            ("-".to_owned(), text)
        }
    };
    vec![pod.namespace.clone(), pod.name.clone(), node, reason]
}

/// Formats an amount of a resource. Long amounts of bytes are rounded to one decimal.
fn shown(resource: &str, amounts: &BTreeMap<String, String>) -> String {
    let text = amounts.get(resource).map_or("0", String::as_str);
    if matches!(resource, MEMORY | EPHEMERAL_STORAGE) && text.len() > LONGEST_BYTES {
        return Quantity::parse(text).map_or_else(|_| text.to_owned(), |amount| bytes(amount.value()));
    }
    text.to_owned()
}

/// Formats bytes in the largest unit that is not above the amount, with one decimal.
#[expect(clippy::cast_precision_loss, reason = "for people, with one decimal")]
fn bytes(amount: i64) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let unit = (0..UNITS.len()).rev().find(|unit| amount.unsigned_abs() >> (10 * unit) > 0).unwrap_or(0);
    let number = amount as f64 / (1_u64 << (10 * unit)) as f64;
    format!("{number:.1}{}", UNITS[unit])
}

fn change(resource: &str, node: &NodeReport) -> String {
    let [before, after, all] = [&node.before, &node.after, &node.allocatable].map(|list| shown(resource, list));
    format!("{before} → {after} of {all}")
}

fn node_row(node: &NodeReport) -> Vec<String> {
    let mut row = vec![node.name.clone()];
    row.extend([CPU, MEMORY, PODS].map(|resource| change(resource, node)));
    let others: Vec<String> = node
        .allocatable
        .keys()
        .filter(|name| !matches!(name.as_str(), CPU | MEMORY | PODS))
        .filter(|name| node.before.contains_key(*name) || node.after.contains_key(*name))
        .map(|name| format!("{name} {}", change(name, node)))
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
        if !self.preempted.is_empty() {
            writeln!(f)?;
            let rows = std::iter::once(header(&["NAMESPACE", "PREEMPTED", "FROM"]));
            let preempted =
                self.preempted.iter().map(|pod| vec![pod.namespace.clone(), pod.name.clone(), pod.node.clone()]);
            columns(f, &rows.chain(preempted).collect::<Vec<_>>())?;
        }
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
        write!(
            f,
            "{} placed, {} pending, {} already placed",
            count(totals.placed, "pod"),
            totals.pending,
            totals.already_placed,
        )?;
        if !self.preempted.is_empty() {
            write!(f, ", {} preempted", self.preempted.len())?;
        }
        write!(f, ", on {}", count(totals.nodes, "node"))?;
        if totals.placed > 0 {
            write!(f, "; the last one was placed after {:.1} s of virtual time", totals.virtual_seconds)?;
        }
        writeln!(f)
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short() {
        let check = |amount: &str, expected: &str| {
            assert_eq!(shown(MEMORY, &BTreeMap::from([(MEMORY.to_owned(), amount.to_owned())])), expected);
        };
        check("8Gi", "8Gi");
        check("16383Mi", "16383Mi");
        check("32859992Ki", "31.3Gi");
        check("1234567890", "1.1Gi");
        check("-1234567890", "-1.1Gi");
        check("1048575Ki", "1024.0Mi");
        assert_eq!(bytes(500), "500.0");
    }
}
