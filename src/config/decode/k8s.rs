//! Types of the core API that plugin arguments contain.

use k8s_openapi::api::core::v1::{
    NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm,
    TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::wire_struct;

wire_struct!(NodeAffinity, "v1.NodeAffinity", {
    "requiredDuringSchedulingIgnoredDuringExecution" => required_during_scheduling_ignored_during_execution,
    "preferredDuringSchedulingIgnoredDuringExecution" => preferred_during_scheduling_ignored_during_execution,
});

wire_struct!(NodeSelector, "v1.NodeSelector", { "nodeSelectorTerms" => node_selector_terms });

wire_struct!(NodeSelectorTerm, "v1.NodeSelectorTerm", {
    "matchExpressions" => match_expressions,
    "matchFields" => match_fields,
});

wire_struct!(NodeSelectorRequirement, "v1.NodeSelectorRequirement", {
    "key" => key,
    "operator" as "v1.NodeSelectorOperator" => operator,
    "values" => values,
});

wire_struct!(PreferredSchedulingTerm, "v1.PreferredSchedulingTerm", {
    "weight" => weight,
    "preference" => preference,
});

wire_struct!(TopologySpreadConstraint, "v1.TopologySpreadConstraint", {
    "maxSkew" => max_skew,
    "topologyKey" => topology_key,
    "whenUnsatisfiable" as "v1.UnsatisfiableConstraintAction" => when_unsatisfiable,
    "labelSelector" => label_selector,
    "minDomains" => min_domains,
    "nodeAffinityPolicy" as "v1.NodeInclusionPolicy" => node_affinity_policy,
    "nodeTaintsPolicy" as "v1.NodeInclusionPolicy" => node_taints_policy,
    "matchLabelKeys" => match_label_keys,
});

wire_struct!(LabelSelector, "v1.LabelSelector", {
    "matchLabels" => match_labels,
    "matchExpressions" => match_expressions,
});

wire_struct!(LabelSelectorRequirement, "v1.LabelSelectorRequirement", {
    "key" => key,
    "operator" as "v1.LabelSelectorOperator" => operator,
    "values" => values,
});
