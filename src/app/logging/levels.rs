//! Log verbosity, which can change while the process runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::LevelFilter;

use super::file_name;

/// The verbosity of all files, and of individual ones. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::app) struct Verbosity(Arc<Levels>);

/// The levels of all files, and of files by name.
#[derive(Debug)]
struct Levels {
    all: AtomicU32,
    /// Levels by pattern of the file name without `.rs`. The first match counts.
    files: Vec<(String, u32)>,
}

impl Verbosity {
    /// Creates a verbosity for all files, and for files whose names match patterns.
    pub(in crate::app) fn new(all: u32, files: Vec<(String, u32)>) -> Self {
        Self(Arc::new(Levels { all: AtomicU32::new(all), files }))
    }

    /// Changes the verbosity of the files that match no pattern.
    pub(in crate::app) fn set(&self, all: u32) {
        self.0.all.store(all, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Returns the highest level that any file may log.
    pub(super) fn most(&self) -> LevelFilter {
        let files = self.0.files.iter().map(|(_, level)| *level);
        // Other crates may log warnings and errors.
        level(files.fold(self.all(), u32::max)).max(LevelFilter::WARN)
    }

    pub(super) fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        // kube logs each rejected request as an error. This crate logs these errors itself where they matter.
        if target.starts_with("kube_client") {
            return false;
        }
        if !target.starts_with("kube_scheduler") {
            return *metadata.level() <= Level::WARN;
        }
        *metadata.level() <= self.of_file(metadata)
    }

    fn of_file(&self, metadata: &Metadata<'_>) -> LevelFilter {
        if self.0.files.is_empty() {
            return level(self.all());
        }
        let name = file_name(metadata);
        let name = name.strip_suffix(".rs").unwrap_or(name);
        let own = self.0.files.iter().find(|(pattern, _)| matches(pattern.as_bytes(), name.as_bytes()));
        level(own.map_or_else(|| self.all(), |(_, level)| *level))
    }

    fn all(&self) -> u32 {
        self.0.all.load(Ordering::Relaxed)
    }
}

fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 | 1 => LevelFilter::INFO,
        2 | 3 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// Whether a pattern of letters, `?` and `*` matches a whole name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        (Some((b'?', rest)), Some((_, name))) => matches(rest, name),
        (Some((letter, rest)), Some((first, name))) => letter == first && matches(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let check = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [("queue", "queue"), ("*", ""), ("q*e", "queue"), ("qu?ue", "queue"), ("*ue", "queue")] {
            assert!(check(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("queue", "queues"), ("", "q"), ("q?", "q"), ("a*", "queue")] {
            assert!(!check(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn vmodule_raises_the_verbosity() {
        let verbosity = Verbosity::new(0, vec![("queue".to_owned(), 5)]);
        assert_eq!(verbosity.most(), LevelFilter::TRACE);
        let verbosity = Verbosity::new(0, Vec::new());
        assert_eq!(verbosity.most(), LevelFilter::INFO);
        verbosity.set(4);
        assert_eq!(verbosity.most(), LevelFilter::TRACE);
    }
}
