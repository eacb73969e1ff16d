//! What of a configuration the product does not act on yet. Said aloud, so that nobody relies on it in vain.

use super::catalog::PluginCatalog;
use super::gates::FeatureGates;
use super::types::Config;

impl Config {
    /// Fields that differ from their defaults and do nothing in a simulation, one sentence each: they are about a process
    /// that serves a cluster, or would reach into one.
    pub fn warnings(&self) -> Vec<String> {
        let defaults = Self::defaults(&FeatureGates::default(), &PluginCatalog::default());
        let changed = [
            ("leaderElection", self.leader_election != defaults.leader_election),
            ("clientConnection", self.client_connection != defaults.client_connection),
            ("enableProfiling", self.enable_profiling != defaults.enable_profiling),
            ("enableContentionProfiling", self.enable_contention_profiling != defaults.enable_contention_profiling),
            ("delayCacheUntilActive", self.delay_cache_until_active != defaults.delay_cache_until_active),
        ];
        let names = changed.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name.to_owned());
        let binders = self.extenders.iter().enumerate().filter(|(_, extender)| !extender.bind_verb.is_empty());
        let binders = binders.map(|(at, _)| format!("extenders[{at}].bindVerb"));
        names.chain(binders).map(|name| format!("{name}: has no effect here")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

    fn check(body: &str, expected: &[&str]) {
        let config =
            Config::parse(format!("{HEAD}{body}").as_bytes(), &FeatureGates::default(), &PluginCatalog::default())
                .expect("reads");
        assert_eq!(config.warnings(), expected, "{body}");
    }

    #[test]
    fn names_what_a_simulation_leaves_out() {
        check(
            "parallelism: 3\npodMaxBackoffSeconds: 20\nleaderElection: {leaderElect: true, leaseDuration: 15s}\n",
            &[],
        );
        check(
            "leaderElection: {leaderElect: no}\ndelayCacheUntilActive: yes\n",
            &["leaderElection: has no effect here", "delayCacheUntilActive: has no effect here"],
        );
    }

    #[test]
    fn names_extenders_that_bind() {
        check(
            "extenders: [{urlPrefix: u, filterVerb: f}, {urlPrefix: v, bindVerb: b}]\n",
            &["extenders[1].bindVerb: has no effect here"],
        );
    }
}
