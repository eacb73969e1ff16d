//! Warnings about settings that have no effect, so that nobody relies on them.

use super::catalog::PluginCatalog;
use super::gates::FeatureGates;
use super::types::Config;

impl Config {
    /// Returns a warning for each non-default field that has no effect in a simulation. These fields configure a process that
    /// serves a cluster, or would change the cluster.
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
        names.chain(binders).map(|name| format!("{name}: has no effect on this command")).collect()
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
            &["leaderElection: has no effect on this command", "delayCacheUntilActive: has no effect on this command"],
        );
    }

    #[test]
    fn names_extenders_that_bind() {
        check(
            "extenders: [{urlPrefix: u, filterVerb: f}, {urlPrefix: v, bindVerb: b}]\n",
            &["extenders[1].bindVerb: has no effect on this command"],
        );
    }
}
