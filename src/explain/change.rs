//! A change of a pod or its cluster after which the pod would fit.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A single change of the pod or the cluster after which some node could take the pod. Each change has been tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The change, as an instruction.
    pub change: String,
    /// The nodes that could then take the pod. Empty for a change that adds a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Arc<str>>,
}

/// Number of nodes that are named. The rest is counted.
const NAMED: usize = 3;

/// Names of nodes, of which the first few are displayed and the rest is counted.
pub(super) struct Nodes<'a>(pub(super) &'a [&'a str]);

impl fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.len().min(NAMED);
        f.write_str(&self.0[..named].join(", "))?;
        match self.0.len() - named {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.change)?;
        if self.nodes.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.nodes.iter().map(|node| &**node).collect();
        write!(f, " → {}", Nodes(&names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_node_lists_are_shortened() {
        let check = |nodes: &[&str], expected: &str| assert_eq!(Nodes(nodes).to_string(), expected);
        check(&["a"], "a");
        check(&["a", "b", "c"], "a, b, c");
        check(&["a", "b", "c", "d", "e"], "a, b, c and 2 more");
        let change = Change { change: "tolerate a".to_owned(), nodes: vec!["n".into()] };
        assert_eq!(change.to_string(), "tolerate a → n");
    }
}
