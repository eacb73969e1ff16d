//! Explanations as readable text.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::change::Nodes;
use super::{Explanation, PodExplanation};
use crate::framework::Code;
use crate::scheduler::{NodeEvaluation, ScoreEvaluation};
use crate::simulate::columns;

/// Maximum rows of each table. The number of omitted rows is shown.
const ROWS: usize = 10;

/// Maximum number of plugins that are shown in the difference between two nodes.
const PLUGINS: usize = 3;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pods.is_empty() {
            let place = if self.pending > 0 { " in this namespace" } else { "" };
            let whose = if self.foreign.is_empty() { "" } else { " for the profiles of this configuration" };
            writeln!(f, "No pod is pending{place}{whose}.")?;
            return self.foreign(f);
        }
        // Pods of one workload mostly have the same explanation, which is printed once.
        let mut told: Vec<(Vec<&str>, String)> = Vec::new();
        for pod in &self.pods {
            let (name, page) = (&*pod.evaluation.pod, pod.to_string());
            match told.iter_mut().find(|(_, known)| *known == page) {
                Some((names, _)) => names.push(name),
                None => told.push((vec![name], page)),
            }
        }
        for (number, (names, page)) in told.iter().enumerate() {
            let (blank, word) = (if number > 0 { "\n" } else { "" }, if names.len() > 1 { "Pods" } else { "Pod" });
            write!(f, "{blank}{word} {}: {page}", Nodes(names))?;
        }
        match self.pending.saturating_sub(1) {
            0 => {}
            1 => f.write_str("\nThe other pending pod is assumed to stay pending.\n")?,
            others => writeln!(f, "\nThe other {others} pending pods are assumed to stay pending.")?,
        }
        self.foreign(f)
    }
}

impl Explanation {
    /// Writes the number of pending pods of other schedulers.
    fn foreign(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scheduler, count) in &self.foreign {
            let (pods, are) = if *count == 1 { ("pod", "is") } else { ("pods", "are") };
            writeln!(
                f,
                "\n{count} {pods} {are} pending for schedulerName {scheduler:?}, which is no profile of this configuration. Use \
                 --config to pass a configuration that has it."
            )?;
        }
        Ok(())
    }
}

/// Writes the explanation without the pod's name.
impl fmt::Display for PodExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.rejections(f)?;
        self.ranking(f)?;
        if let Some(preemption) = &self.preemption {
            writeln!(f, "\nPreemption: {preemption}")?;
        }
        if !self.changes.is_empty() {
            f.write_str("\nAny one of these changes would make it schedulable:\n")?;
            for change in &self.changes {
                writeln!(f, "  {change}")?;
            }
        } else if self.evaluation.host.is_empty() && self.evaluation.error.is_empty() {
            f.write_str("\nNo single change that was tried would make it schedulable.\n")?;
        }
        Ok(())
    }
}

impl PodExplanation {
    /// Writes the result for the pod in a line or two.
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = &self.evaluation;
        let feasible = said.nodes.iter().filter(|node| is_feasible(node)).count();
        if !said.error.is_empty() {
            writeln!(f, "the scheduling attempt fails: {}", said.error)?;
        } else if said.host.is_empty() {
            writeln!(f, "unschedulable\n{}", said.message)?;
        } else {
            let (all, host) = (said.nodes.len(), &said.host);
            writeln!(f, "{feasible} of {all} nodes are feasible, and {} selects {host}", said.scheduler)?;
        }
        if !said.skipped.is_empty() {
            writeln!(f, "It is not scheduled because it is being deleted.")?;
        }
        match &said.pre_enqueue {
            Some(held) => writeln!(f, "It is gated by {}: {}", held.plugin, held.reasons.join(", ")),
            None => Ok(()),
        }
    }

    /// Writes the rejected nodes, grouped by reason.
    fn rejections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
        for node in self.evaluation.nodes.iter().filter(|node| !is_feasible(node)) {
            let plugin = if node.absent { "PreFilter" } else { &node.status.plugin };
            groups.entry((plugin, node.status.reasons.join(", "))).or_default().push(&node.node);
        }
        if groups.is_empty() {
            return Ok(());
        }
        let mut groups: Vec<((&str, String), Vec<&str>)> = groups.into_iter().collect();
        groups.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
        let more = groups.len().saturating_sub(ROWS);
        let mut rows = vec![row(["COUNT", "REJECTED BY", "REASON", "NODES"])];
        rows.extend(groups.into_iter().take(ROWS).map(|((plugin, reason), nodes)| {
            row([&nodes.len().to_string(), plugin, &reason, &Nodes(&nodes).to_string()])
        }));
        f.write_str("\n")?;
        columns(f, &rows)?;
        left_out(f, more, "reason")
    }

    /// Writes the feasible nodes, best first, each with the score differences to the previous one.
    fn ranking(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.evaluation.score_error.is_empty() {
            writeln!(f, "\nScoring fails: {}", self.evaluation.score_error)?;
        }
        let mut nodes: Vec<(&NodeEvaluation, i64)> =
            self.evaluation.nodes.iter().filter_map(|node| Some((node, node.total?))).collect();
        if nodes.is_empty() {
            return Ok(());
        }
        // The sort is stable. Among equal totals the chosen node comes first, then the others in evaluation order.
        nodes.sort_by_key(|(node, total)| (std::cmp::Reverse(*total), *node.node != *self.evaluation.host));
        let more = nodes.len().saturating_sub(ROWS);
        let mut rows = vec![row(["NODE", "TOTAL", "DIFFERENCE TO PREVIOUS"])];
        for (at, (node, total)) in nodes.iter().enumerate().take(ROWS) {
            let difference = match at.checked_sub(1).map(|above| nodes[above].0) {
                None => String::new(),
                Some(above) => difference(&above.scores, &node.scores),
            };
            rows.push(row([&node.node, &total.to_string(), &difference]));
        }
        f.write_str("\n")?;
        columns(f, &rows)?;
        left_out(f, more, "node")
    }
}

fn is_feasible(node: &NodeEvaluation) -> bool {
    node.status.code == Code::Success.as_str()
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn left_out(f: &mut fmt::Formatter<'_>, more: usize, what: &str) -> fmt::Result {
    match more {
        0 => Ok(()),
        1 => writeln!(f, "… and 1 more {what}"),
        more => writeln!(f, "… and {more} more {what}s"),
    }
}

/// Formats the largest score differences by plugin.
fn difference(above: &BTreeMap<Arc<str>, ScoreEvaluation>, own: &BTreeMap<Arc<str>, ScoreEvaluation>) -> String {
    let weighted = |scores: &BTreeMap<Arc<str>, ScoreEvaluation>, plugin: &str| {
        scores.get(plugin).map_or(0, |score| score.weighted)
    };
    let mut differences: Vec<(&str, i64)> = own
        .keys()
        .map(|plugin| (&**plugin, weighted(own, plugin).saturating_sub(weighted(above, plugin))))
        .filter(|(_, difference)| *difference != 0)
        .collect();
    differences.sort_by_key(|(_, difference)| std::cmp::Reverse(difference.unsigned_abs()));
    if differences.is_empty() {
        return "none".to_owned();
    }
    let more = if differences.len() > PLUGINS { ", …" } else { "" };
    let shown: Vec<String> =
        differences.iter().take(PLUGINS).map(|(plugin, difference)| format!("{plugin} {difference:+}")).collect();
    format!("{}{more}", shown.join(", "))
}
