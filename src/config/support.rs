//! What of a configuration the product does not act on yet. Said aloud, so that nobody relies on it in vain.

use super::gates::FeatureGates;
use super::load::ConfigError;
use super::types::Config;

impl Config {
    /// Fields that differ from their defaults and do nothing in a simulation, one sentence each: they are about a process
    /// that serves a cluster.
    pub fn warnings(&self) -> Vec<String> {
        let defaults = Self::defaults(&FeatureGates::default());
        let changed = [
            ("leaderElection", self.leader_election != defaults.leader_election),
            ("clientConnection", self.client_connection != defaults.client_connection),
            ("enableProfiling", self.enable_profiling != defaults.enable_profiling),
            ("enableContentionProfiling", self.enable_contention_profiling != defaults.enable_contention_profiling),
            ("delayCacheUntilActive", self.delay_cache_until_active != defaults.delay_cache_until_active),
        ];
        let names = changed.into_iter().filter(|(_, changed)| *changed).map(|(name, _)| name);
        names.map(|name| format!("{name}: has no effect in a simulation")).collect()
    }

    /// An error where extenders are configured: they are not built yet, and leaving one out would misplace pods.
    pub fn refuse_extenders(&self) -> Result<(), ConfigError> {
        if self.extenders.is_empty() { Ok(()) } else { Err(ConfigError::new("extenders: not supported yet")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

    fn check(body: &str, expected: &[&str]) {
        let config = Config::parse(format!("{HEAD}{body}").as_bytes(), &FeatureGates::default()).expect("reads");
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
            &["leaderElection: has no effect in a simulation", "delayCacheUntilActive: has no effect in a simulation"],
        );
    }

    #[test]
    fn refuses_extenders() {
        let text = format!("{HEAD}extenders: [{{urlPrefix: u, filterVerb: f}}]");
        let config = Config::parse(text.as_bytes(), &FeatureGates::default()).expect("reads");
        let error = config.refuse_extenders().expect_err("not built");
        assert_eq!(error.to_string(), "extenders: not supported yet");
        Config::defaults(&FeatureGates::default()).refuse_extenders().expect("none");
    }
}
