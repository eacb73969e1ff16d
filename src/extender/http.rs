//! One extender: its requests, and the interpretation of its replies.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::client::{Background, Client};
use super::wire::{self, Args, BindingArgs, Empty, FilterResult, MetaPod, NodeList, PreemptionArgs, VictimsOf};
use crate::config;
use crate::framework::{BoxFuture, NodeRef, PluginError};
use crate::k8s::{Container, Node, Original, Pod};
use crate::model::{NodeInfo, PodInfo, Snapshot};
use crate::scheduler::{Extender, ExtenderFilter, Kept, Victims, WholeObjects};

/// An extender that is called over HTTP. Follows `pkg/scheduler/extender.go#HTTPExtender @v1.36.3`.
pub struct HttpExtender {
    client: Client,
    filter_verb: String,
    prioritize_verb: String,
    preempt_verb: String,
    bind_verb: String,
    weight: i64,
    node_cache_capable: bool,
    ignorable: bool,
    /// Resources that the extender manages. It is called only for pods that request one of them. Empty for all pods.
    managed_resources: BTreeSet<String>,
}

impl HttpExtender {
    /// Creates the configured extender. It does not connect yet.
    pub(super) fn new(config: &config::Extender, background: Arc<Background>) -> Result<Self, String> {
        Ok(Self {
            client: Client::new(config, background)?,
            filter_verb: config.filter_verb.clone(),
            prioritize_verb: config.prioritize_verb.clone(),
            preempt_verb: config.preempt_verb.clone(),
            bind_verb: config.bind_verb.clone(),
            weight: config.weight,
            node_cache_capable: config.node_cache_capable,
            ignorable: config.ignorable,
            managed_resources: config.managed_resources.iter().map(|resource| resource.name.clone()).collect(),
        })
    }

    /// Sends a request and parses the reply.
    fn ask<T>(
        &self,
        verb: &str,
        args: &impl Serialize,
        read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
    ) -> Result<T, PluginError> {
        let reply = self.client.post_blocking(verb, encode(args)?).map_err(|error| told(&error))?;
        decode(&reply, read)
    }

    /// Sends a request about nodes. It contains their names if the extender caches nodes, otherwise the whole nodes.
    fn ask_about<T>(
        &self,
        verb: &str,
        pod: &PodInfo,
        nodes: &[NodeRef<'_>],
        read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
    ) -> Result<T, PluginError> {
        let pod = whole_pod(pod.pod())?;
        let args = if self.node_cache_capable {
            let names = nodes.iter().map(|node| node.name()).collect();
            Args { pod: &pod, nodes: None, node_names: Some(names) }
        } else {
            let items = nodes.iter().map(|node| whole_node(node.node())).collect::<Result<_, _>>()?;
            Args { pod: &pod, nodes: Some(NodeList { metadata: Empty {}, items }), node_names: None }
        };
        self.ask(verb, &args, read)
    }

    /// Returns the nodes that a filter reply keeps.
    fn kept(&self, nodes: &[NodeRef<'_>], reply: &FilterResult) -> Result<Kept, PluginError> {
        if let Some(names) = reply.node_names.as_ref().filter(|_| self.node_cache_capable) {
            let positions: HashMap<&str, usize> =
                nodes.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
            let position = |name: &String| {
                positions.get(name.as_str()).copied().ok_or_else(|| {
                    let url = self.client.prefix();
                    PluginError::new(format!(
                        "extender {url:?} claims a filtered node {name:?} which is not found in the input node list"
                    ))
                })
            };
            return names.iter().map(position).collect::<Result<_, _>>().map(Kept::Positions);
        }
        match &reply.nodes {
            None => Ok(Kept::default()),
            Some(items) => items.iter().map(|item| rebuilt(item)).collect::<Result<_, _>>().map(Kept::Nodes),
        }
    }

    /// Returns the pod with this UID on a node.
    /// Follows `pkg/scheduler/extender.go#HTTPExtender.convertPodUIDToPod @v1.36.3`. The error shows the UID as Go prints a
    /// pointer.
    fn pod_on(&self, node: &NodeInfo, uid: &str) -> Result<Arc<PodInfo>, PluginError> {
        node.pods().iter().find(|pod| pod.uid() == uid).cloned().ok_or_else(|| {
            let (url, node) = (self.client.prefix(), node.name());
            PluginError::new(format!(
                "extender: {url} claims to preempt pod (UID: &{{{uid}}}) on node: {node}, but the pod is not found on that node"
            ))
        })
    }

    fn manages_any_of(&self, containers: &[Container]) -> bool {
        let resources = containers.iter().map(|container| &container.resources);
        let mut names = resources.flat_map(|asked| asked.requests.iter().chain(asked.limits.iter()));
        names.any(|(name, _)| self.managed_resources.contains(name))
    }
}

impl Extender for HttpExtender {
    fn name(&self) -> &str {
        self.client.prefix()
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        let spec = &pod.pod().spec;
        self.managed_resources.is_empty()
            || self.manages_any_of(&spec.containers)
            || self.manages_any_of(&spec.init_containers)
    }

    fn is_ignorable(&self) -> bool {
        self.ignorable
    }

    fn is_filter(&self) -> bool {
        !self.filter_verb.is_empty()
    }

    fn is_prioritizer(&self) -> bool {
        !self.prioritize_verb.is_empty()
    }

    fn is_binder(&self) -> bool {
        !self.bind_verb.is_empty()
    }

    fn filter(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<ExtenderFilter, PluginError> {
        if !self.is_filter() {
            let kept = Kept::Positions((0..nodes.len()).collect());
            return Ok(ExtenderFilter { kept, ..ExtenderFilter::default() });
        }
        let reply = self.ask_about(&self.filter_verb, pod, nodes, wire::filter_result)?;
        if !reply.error.is_empty() {
            return Err(PluginError::new(reply.error));
        }
        Ok(ExtenderFilter {
            kept: self.kept(nodes, &reply)?,
            failed: reply.failed_nodes,
            failed_and_unresolvable: reply.failed_and_unresolvable_nodes,
        })
    }

    fn prioritize(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<(Vec<(String, i64)>, i64), PluginError> {
        if !self.is_prioritizer() {
            return Ok((nodes.iter().map(|node| (node.name().to_owned(), 0)).collect(), 0));
        }
        let scores = self.ask_about(&self.prioritize_verb, pod, nodes, wire::host_priorities)?;
        Ok((scores, self.weight))
    }

    fn bind<'a>(&'a self, pod: &'a PodInfo, node: &'a str) -> BoxFuture<'a, Result<(), PluginError>> {
        Box::pin(async move {
            if !self.is_binder() {
                return Err(PluginError::new("unexpected empty bindVerb in extender"));
            }
            let args = BindingArgs { pod_name: pod.name(), pod_namespace: pod.namespace(), pod_uid: pod.uid(), node };
            let reply = self.client.post(&self.bind_verb, encode(&args)?).await.map_err(|error| told(&error))?;
            match decode(&reply, wire::binding_error)? {
                error if error.is_empty() => Ok(()),
                error => Err(PluginError::new(error)),
            }
        })
    }

    fn supports_preemption(&self) -> bool {
        !self.preempt_verb.is_empty()
    }

    fn process_preemption(
        &self,
        pod: &PodInfo,
        victims: &BTreeMap<String, Victims>,
        snapshot: &Snapshot,
    ) -> Result<BTreeMap<String, Victims>, PluginError> {
        if !self.supports_preemption() {
            let url = self.client.prefix();
            let text = format!("preempt verb is not defined for extender {url} but run into ProcessPreemption");
            return Err(PluginError::new(text));
        }
        let pod = whole_pod(pod.pod())?;
        let mut args = PreemptionArgs { pod: &pod, node_name_to_victims: None, node_name_to_meta_victims: None };
        if self.node_cache_capable {
            args.node_name_to_meta_victims = Some(each_node(victims, |pod| Ok(MetaPod { uid: pod.uid() }))?);
        } else {
            args.node_name_to_victims = Some(each_node(victims, |pod| whole_pod(pod.pod()))?);
        }
        // The reply identifies pods by UID in both cases.
        let reply = self.ask(&self.preempt_verb, &args, wire::preemption_result)?;
        let chosen = |(name, (uids, num_pdb_violations)): (String, (Vec<String>, i64))| {
            let node = snapshot.get(&name);
            let node = node.ok_or_else(|| PluginError::new(format!("nodeinfo not found for node name {name:?}")))?;
            let pods = uids.iter().map(|uid| self.pod_on(node, uid)).collect::<Result<_, _>>()?;
            Ok((name, Victims { pods, num_pdb_violations }))
        };
        reply.into_iter().map(chosen).collect()
    }

    fn whole_objects(&self) -> WholeObjects {
        let (about_nodes, preempts) = (self.is_filter() || self.is_prioritizer(), self.supports_preemption());
        WholeObjects {
            pending_pods: about_nodes || preempts,
            assigned_pods: preempts && !self.node_cache_capable,
            nodes: about_nodes && !self.node_cache_capable,
        }
    }
}

/// Converts victims to their wire format, by node.
fn each_node<'a, P>(
    victims: &'a BTreeMap<String, Victims>,
    pod: impl Fn(&'a PodInfo) -> Result<P, PluginError>,
) -> Result<BTreeMap<&'a str, VictimsOf<P>>, PluginError> {
    let sent = |(node, of): (&'a String, &'a Victims)| {
        let pods = of.pods.iter().map(|victim| pod(victim)).collect::<Result<_, _>>()?;
        Ok((node.as_str(), VictimsOf { pods, num_pdb_violations: of.num_pdb_violations }))
    };
    victims.iter().map(sent).collect()
}

fn whole_pod(pod: &Pod) -> Result<Cow<'_, RawValue>, PluginError> {
    pod.whole().ok_or_else(|| PluginError::new(format!("the original JSON of pod {} is missing", pod.key())))
}

fn whole_node(node: &Node) -> Result<&RawValue, PluginError> {
    let original = node.original.as_ref().map(Original::json);
    original.ok_or_else(|| PluginError::new(format!("the original JSON of node {} is missing", node.name())))
}

/// Parses a node from a reply. The next extender may receive it.
fn rebuilt(item: &str) -> Result<Arc<NodeInfo>, PluginError> {
    let read = || {
        let raw: Option<&RawValue> = serde_json::from_str(item)?;
        let Some(raw) = raw else { return Ok(Node::default()) };
        let node: Node = serde_json::from_str(raw.get())?;
        Ok(Node { original: Some(Original::of_node(raw)?), ..node })
    };
    let node = read().map_err(|error: serde_json::Error| PluginError::new(format!("Nodes.items: {error}")))?;
    Ok(Arc::new(NodeInfo::new(Arc::new(node))))
}

fn encode(args: &impl Serialize) -> Result<Vec<u8>, PluginError> {
    serde_json::to_vec(args).map_err(|error| told(&error))
}

fn decode<T>(reply: &[u8], read: impl FnOnce(&str) -> Result<T, serde_json::Error>) -> Result<T, PluginError> {
    let value = wire::first_value(reply).and_then(|value| read(value.get()));
    value.map_err(|error| told(&error))
}

fn told(error: &impl ToString) -> PluginError {
    PluginError::new(error.to_string())
}
