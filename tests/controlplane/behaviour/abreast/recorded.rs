//! Recorded sequences: each a file with a change a line.

use std::fs;
use std::path::PathBuf;

use super::change::Change;
use super::stories;

/// A sequence of changes that has been recorded.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) changes: Vec<Change>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/controlplane/behaviour/abreast/recorded")
        .join(format!("{name}.jsonl"))
}

/// Plays all stories and writes what happened.
pub(super) fn record() -> Result<(), String> {
    for (name, story) in stories::ALL {
        let changes = stories::record(name, *story)?;
        let lines: Result<Vec<String>, _> = changes.iter().map(serde_json::to_string).collect();
        let text = lines.map_err(|error| error.to_string())?.join("\n") + "\n";
        let path = path(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{name}: {} changes", changes.len());
    }
    Ok(())
}

/// All that is recorded.
pub(super) fn all() -> Result<Vec<Recorded>, String> {
    stories::ALL.iter().map(|(name, _)| read(name)).collect()
}

fn read(name: &str) -> Result<Recorded, String> {
    let path = path(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), at + 1))
    };
    let changes: Result<Vec<Change>, String> = text.lines().enumerate().map(read).collect();
    Ok(Recorded { name: name.to_owned(), changes: changes? })
}
