//! Profiles of this process from the kernel and the async runtime.

use std::collections::BTreeMap;
use std::fs;

use super::format::{Profile, Sample};

/// Counts the threads by name and, for `goroutine`, the runtime's tasks.
pub(super) fn threads(kind: &'static str) -> Profile {
    let mut names: BTreeMap<String, i64> = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        // A thread may end after it was listed.
        if let Ok(name) = fs::read_to_string(entry.path().join("comm")) {
            *names.entry(format!("thread {}", name.trim_end())).or_default() += 1;
        }
    }
    if kind == "goroutine"
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let tasks = i64::try_from(runtime.metrics().num_alive_tasks()).unwrap_or(i64::MAX);
        names.insert("tasks of the runtime".to_owned(), tasks);
    }
    let samples = names.iter().map(|(name, count)| Sample::of(name, vec![*count])).collect();
    let comment = "Threads and tasks, without stack traces";
    Profile { kinds: vec![(kind, "count")], samples, comment, ..Profile::default() }
}

/// Returns the anonymous resident memory as one sample.
pub(super) fn memory() -> Profile {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes: i64 = line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0);
    let bytes = kibibytes.saturating_mul(1024);
    Profile {
        kinds: vec![
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ],
        samples: vec![Sample::of("resident memory", vec![0, 0, 0, bytes])],
        comment: "Resident memory: allocations are not sampled",
        ..Profile::default()
    }
}

/// Returns an empty profile: contention is not sampled.
pub(super) fn contention() -> Profile {
    let kinds = vec![("contentions", "count"), ("delay", "nanoseconds")];
    Profile { kinds, comment: "Empty: blocking is not sampled", ..Profile::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_threads_and_memory() {
        assert!(!threads("threadcreate").samples.is_empty());
        let memory = memory();
        assert!(memory.samples[0].values[3] > 0, "{memory:?}");
    }

    #[tokio::test]
    async fn the_runtime_has_tasks() {
        let task = tokio::spawn(std::future::pending::<()>());
        let profile = threads("goroutine");
        assert!(profile.text("goroutine").contains("1 @\n#\ttasks of the runtime\n"), "{}", profile.text("goroutine"));
        task.abort();
    }
}
