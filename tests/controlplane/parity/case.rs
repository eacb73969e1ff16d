//! A case: a cluster, a configuration, changes to ask about.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The plugins that are built, in the default order, and whether they score. Configurations enable no others.
pub(crate) const BUILT: &[(&str, bool)] = &[
    ("SchedulingGates", false),
    ("PrioritySort", false),
    ("NodeUnschedulable", false),
    ("NodeName", false),
    ("TaintToleration", true),
    ("NodeAffinity", true),
    ("NodePorts", false),
    ("NodeResourcesFit", true),
    ("PodTopologySpread", true),
    ("InterPodAffinity", true),
    ("NodeResourcesBalancedAllocation", true),
    ("ImageLocality", true),
    ("NodeDeclaredFeatures", false),
    ("DefaultPreemption", false),
    ("DefaultBinder", false),
];

/// Feature gates that cases are run with; they hold for a whole process of the oracle.
pub(crate) const GATES: &[&str] = &[
    "",
    "TaintTolerationComparisonOperators=true",
    "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,RestartAllContainersOnContainerExits=false,\
     InPlacePodVerticalScalingInitContainers=false,ExtendWebSocketsToKubelet=false",
    "InPlacePodLevelResourcesVerticalScaling=false",
    "SchedulerAsyncPreemption=false",
    "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false",
    "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false",
];

/// Takes out empty lists, and empty maps where there is nothing but a map: the API server does not store these, so no
/// scheduler has ever seen one.
pub(crate) fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            fields.retain(|key, value| match value {
                Value::Array(list) => !list.is_empty(),
                Value::Object(inner) => {
                    let map = matches!(
                        key.as_str(),
                        "labels" | "annotations" | "nodeSelector" | "requests" | "limits" | "overhead"
                    );
                    !(inner.is_empty() && (map || key == "allocatedResources"))
                }
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// What it was made from.
    pub(crate) seed: u64,
    /// Feature gates, as the flag takes them.
    pub(crate) gates: &'static str,
    /// API objects: namespaces, nodes, then pods.
    pub(crate) objects: Vec<Value>,
    /// A `KubeSchedulerConfiguration`, or null for the defaults.
    pub(crate) config: Value,
    /// Changes, as the oracle takes them.
    pub(crate) events: Vec<Value>,
}

impl Case {
    /// The oracle's request.
    pub(crate) fn request(&self) -> Value {
        json!({"id": self.seed, "objects": self.objects, "config": self.config, "events": self.events})
    }

    /// Writes the case down: the cluster as one file that `oracle -f` and `kube-scheduler simulate` read, its configuration
    /// and its events beside it. Gives the cluster's file.
    pub(crate) fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let file = |kind: &str| folder.join(format!("case-{}-{kind}.yaml", self.seed));
        let yaml = |value: &Value| serde_yaml::to_string(value).map_err(std::io::Error::other);
        let mut cluster = String::new();
        for object in &self.objects {
            cluster.push_str("---\n");
            cluster.push_str(&yaml(object)?);
        }
        std::fs::write(file("cluster"), cluster)?;
        if !self.config.is_null() {
            std::fs::write(file("config"), yaml(&self.config)?)?;
        }
        if !self.events.is_empty() {
            std::fs::write(file("events"), yaml(&Value::from(self.events.clone()))?)?;
        }
        Ok(file("cluster"))
    }
}
