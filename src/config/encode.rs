//! Encodes a resolved configuration as upstream's v1 object, with all defaults and with plugin sets as configured.
//!
//! Follows `cmd/kube-scheduler/app/options/configfile.go#encodeConfig` and
//! `kube-scheduler/config/v1/types.go @v1.36.3`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::any_args::AnyArgs;
use super::decode::GROUP_VERSION;
use super::types::{Config, Extender, ExtensionPoint, Plugin, PluginConfig, PluginSet, Profile, TlsSettings};

impl Config {
    /// The effective configuration as a `KubeSchedulerConfiguration` of v1, in JSON. Each profile's plugin config is
    /// sorted by name, without the plugins that the profile does not enable.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#NewFramework @v1.36.3`, which outputs only the config it has used.
    pub fn to_v1(&self) -> Value {
        let (election, client) = (&self.leader_election, &self.client_connection);
        let mut out = json!({
            "apiVersion": GROUP_VERSION,
            "kind": "KubeSchedulerConfiguration",
            "parallelism": self.parallelism,
            "leaderElection": {
                "leaderElect": election.leader_elect,
                "leaseDuration": election.lease_duration,
                "renewDeadline": election.renew_deadline,
                "retryPeriod": election.retry_period,
                "resourceLock": election.resource_lock,
                "resourceName": election.resource_name,
                "resourceNamespace": election.resource_namespace,
            },
            "clientConnection": {
                "kubeconfig": client.kubeconfig,
                "acceptContentTypes": client.accept_content_types,
                "contentType": client.content_type,
                "qps": number(client.qps),
                "burst": client.burst,
            },
            "enableProfiling": self.enable_profiling,
            "enableContentionProfiling": self.enable_contention_profiling,
            "percentageOfNodesToScore": self.percentage_of_nodes_to_score,
            "podInitialBackoffSeconds": self.pod_initial_backoff_seconds,
            "podMaxBackoffSeconds": self.pod_max_backoff_seconds,
        });
        set(&mut out, "profiles", list(&self.profiles, profile));
        set(&mut out, "extenders", list(&self.extenders, extender));
        set(&mut out, "delayCacheUntilActive", some_if(self.delay_cache_until_active));
        out
    }
}

/// Formats a number as Go does: with the fewest digits that parse to the same value, and without a point if it is whole.
fn number(value: f32) -> Value {
    let text = value.to_string();
    let float = || text.parse::<f64>().map_or(Value::Null, Value::from);
    text.parse::<i64>().map_or_else(|_| float(), Value::from)
}

/// Sets a field unless the value is `None`, which stands for an empty value.
fn set(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Value::Object(map), Some(value)) = (object, value) {
        map.insert(key.to_owned(), value);
    }
}

fn list<T>(items: &[T], encode: impl Fn(&T) -> Value) -> Option<Value> {
    (!items.is_empty()).then(|| Value::Array(items.iter().map(encode).collect()))
}

fn some_if(flag: bool) -> Option<Value> {
    flag.then_some(Value::Bool(true))
}

fn some_text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| Value::from(text))
}

fn profile(profile: &Profile) -> Value {
    let mut plugins = Map::new();
    for point in ExtensionPoint::ALL {
        plugins.insert(point.key().to_owned(), plugin_set(profile.plugins.point(point)));
    }
    plugins.insert("multiPoint".to_owned(), plugin_set(&profile.plugins.multi_point));
    let mut out = json!({"schedulerName": profile.scheduler_name, "plugins": plugins});
    set(&mut out, "percentageOfNodesToScore", profile.percentage_of_nodes_to_score.map(Value::from));
    let sets =
        ExtensionPoint::ALL.iter().map(|point| profile.plugins.point(*point)).chain([&profile.plugins.multi_point]);
    let enabled: BTreeSet<&str> = sets.flat_map(|set| set.enabled.iter().map(|plugin| &*plugin.name)).collect();
    let used = |config: &&PluginConfig| enabled.contains(&*config.name);
    let mut configs: Vec<&PluginConfig> = profile.plugin_config.iter().filter(used).collect();
    configs.sort_by(|a, b| a.name.cmp(&b.name));
    set(&mut out, "pluginConfig", list(&configs, |config| plugin_config(config)));
    out
}

fn plugin_set(plugins: &PluginSet) -> Value {
    let entry = |plugin: &Plugin| json!({"name": plugin.name, "weight": plugin.weight});
    let mut out = json!({});
    set(&mut out, "enabled", list(&plugins.enabled, entry));
    set(&mut out, "disabled", list(&plugins.disabled, entry));
    out
}

fn plugin_config(config: &PluginConfig) -> Value {
    // Serializing args cannot fail: their keys are strings and their floats are finite.
    let mut args = config.args.to_json().unwrap_or_default();
    if let AnyArgs::Typed(typed) = &config.args {
        set(&mut args, "apiVersion", Some(GROUP_VERSION.into()));
        set(&mut args, "kind", Some(typed.kind().into()));
    }
    json!({"name": config.name, "args": args})
}

fn extender(extender: &Extender) -> Value {
    let mut out = json!({"urlPrefix": extender.url_prefix, "httpTimeout": extender.http_timeout});
    set(&mut out, "filterVerb", some_text(&extender.filter_verb));
    set(&mut out, "preemptVerb", some_text(&extender.preempt_verb));
    set(&mut out, "prioritizeVerb", some_text(&extender.prioritize_verb));
    set(&mut out, "weight", (extender.weight != 0).then(|| extender.weight.into()));
    set(&mut out, "bindVerb", some_text(&extender.bind_verb));
    set(&mut out, "enableHTTPS", some_if(extender.enable_https));
    set(&mut out, "tlsConfig", extender.tls.as_ref().map(tls));
    set(&mut out, "nodeCacheCapable", some_if(extender.node_cache_capable));
    let managed = list(&extender.managed_resources, |resource| {
        let mut out = json!({"name": resource.name});
        set(&mut out, "ignoredByScheduler", some_if(resource.ignored_by_scheduler));
        out
    });
    set(&mut out, "managedResources", managed);
    set(&mut out, "ignorable", some_if(extender.ignorable));
    out
}

fn tls(tls: &TlsSettings) -> Value {
    let data = |bytes: &[u8]| (!bytes.is_empty()).then(|| Value::from(crate::go::base64::encode(bytes)));
    let mut out = json!({});
    set(&mut out, "insecure", some_if(tls.insecure));
    set(&mut out, "serverName", some_text(&tls.server_name));
    set(&mut out, "certFile", some_text(&tls.cert_file));
    set(&mut out, "keyFile", some_text(&tls.key_file));
    set(&mut out, "caFile", some_text(&tls.ca_file));
    set(&mut out, "certData", data(&tls.cert_data));
    set(&mut out, "keyData", data(&tls.key_data));
    set(&mut out, "caData", data(&tls.ca_data));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;

    #[test]
    fn written_configuration_round_trips() {
        let (gates, plugins) = (FeatureGates::default(), crate::plugins::registry());
        let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n\
                    delayCacheUntilActive: true\n\
                    profiles: [{percentageOfNodesToScore: 7, plugins: {score: {enabled: [{name: Mine, weight: 2}], \
                    disabled: [{name: ImageLocality}]}}, pluginConfig: [{name: Mine, args: {a: [1, b]}}]}]\n\
                    extenders: [{urlPrefix: u, filterVerb: f, weight: 2, httpTimeout: 3s, enableHTTPS: true, \
                    tlsConfig: {caData: aGVsbG8=, serverName: s}, managedResources: [{name: a.b/c, \
                    ignoredByScheduler: true}]}]\n";
        let config = Config::parse(text.as_bytes(), &gates, plugins.catalog()).expect("reads");
        let written = config.to_v1();
        let again = Config::parse(written.to_string().as_bytes(), &gates, plugins.catalog()).expect("reads back");
        assert_eq!(again.to_v1(), written);
        assert_eq!(again.extenders, config.extenders);
        assert_eq!(written["extenders"][0]["tlsConfig"], json!({"caData": "aGVsbG8=", "serverName": "s"}));
        assert_eq!(written["profiles"][0]["pluginConfig"][0]["args"]["kind"], "DefaultPreemptionArgs");
    }
}
