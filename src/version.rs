//! Versions of this program and of the Kubernetes release that it stands in for.
//!
//! Clients and operators of a cluster see [`KUBERNETES`] wherever upstream's kube-scheduler shows its version. This program's own
//! version stands beside it: in a log line at the start, in a metric, in the User-Agent, and in `kube-scheduler version`.

/// Kubernetes release whose kube-scheduler this program replaces.
pub const KUBERNETES: &str = "v1.36.3";

/// Name of this program where `kube-scheduler` alone would also mean upstream's.
pub const PROGRAM: &str = "kube-scheduler-rs";

/// Version of this program, without a `v`.
pub const OWN: &str = env!("CARGO_PKG_VERSION");

/// Git commit of the sources: 40 hexadecimal digits, or `unknown`.
pub const COMMIT: &str = env!("KUBE_SCHEDULER_COMMIT");

/// Compiler of this build, such as `rustc 1.95.0`.
pub const COMPILER: &str = env!("KUBE_SCHEDULER_COMPILER");

/// Operating system and architecture of this build, as Go names them.
pub const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };

/// Length to which a User-Agent shortens a commit.
/// Follows `client-go/rest/config.go#adjustCommit @v1.36.3`.
const SHORT_COMMIT: usize = 7;

/// Returns the User-Agent of one client of the process. An empty name stands for the process as a whole.
///
/// Up to the comment at the end, the text is upstream's for a build that does not know its Kubernetes commit. The comment names
/// this program and its commit. Follows `client-go/rest/config.go#DefaultKubernetesUserAgent`, `#AddUserAgent @v1.36.3`.
pub fn user_agent(client: &str) -> String {
    let slash = if client.is_empty() { "" } else { "/" };
    format!("kube-scheduler/{KUBERNETES} ({PLATFORM}) kubernetes/unknown{slash}{client} {}", comment())
}

/// Returns the comment that ends a User-Agent, such as `(kube-scheduler-rs/0.1.0 6ac007c)`.
pub fn comment() -> String {
    let commit = COMMIT.get(..SHORT_COMMIT).unwrap_or(COMMIT);
    format!("({PROGRAM}/{OWN} {commit})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agent_extends_upstreams_with_a_comment() {
        let commit = COMMIT.get(..SHORT_COMMIT).unwrap_or(COMMIT);
        let comment = format!("(kube-scheduler-rs/{} {commit})", env!("CARGO_PKG_VERSION"));
        let base = format!("kube-scheduler/v1.36.3 ({PLATFORM}) kubernetes/unknown");
        assert_eq!(user_agent("scheduler"), format!("{base}/scheduler {comment}"));
        assert_eq!(user_agent(""), format!("{base} {comment}"));
    }
}
