//! Reads the bytes of cluster files from paths.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::load::LoadError;

/// Extensions of the files that are read from a folder.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Maximum bytes of a file: several times the size of a cluster of 15,000 nodes and 150,000 pods. Without a limit, a device
/// or pipe might never end.
const MAX_BYTES: u64 = 2 << 30;

/// Name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// Returns the path itself, or for a folder the cluster files below it, sorted by path.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let name = path.display().to_string();
    if is_standard_input(path) || !std::fs::metadata(path).map_err(|error| file_error(&name, &error))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    // Links may lead to the same folder or file more than once, and may form cycles.
    let mut seen = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        let shown = folder.display().to_string();
        let failed = |error: io::Error| file_error(&shown, &error);
        if !seen.insert(folder.canonicalize().map_err(failed)?) {
            continue;
        }
        let entries: Result<Vec<PathBuf>, io::Error> =
            std::fs::read_dir(&folder).map_err(failed)?.map(|entry| Ok(entry?.path())).collect();
        let mut entries = entries.map_err(failed)?;
        entries.sort();
        for entry in entries {
            let extension = entry.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if entry.is_dir() {
                folders.push(entry);
            } else if EXTENSIONS.contains(&extension) {
                let shown = entry.display().to_string();
                let real = entry.canonicalize().map_err(|error| file_error(&shown, &error))?;
                if seen.insert(real) {
                    found.push(entry);
                }
            }
        }
    }
    found.sort();
    if found.is_empty() { Err(LoadError::EmptyFolder(name)) } else { Ok(found) }
}

/// Returns the name of a file for messages, and its bytes.
pub(super) fn read(file: &Path) -> Result<(String, Vec<u8>), LoadError> {
    let name = if is_standard_input(file) { STANDARD_INPUT.to_owned() } else { file.display().to_string() };
    let data = if is_standard_input(file) {
        read_up_to(MAX_BYTES, io::stdin().lock())
    } else {
        std::fs::File::open(file).and_then(|file| read_up_to(MAX_BYTES, file))
    };
    match data {
        Ok(data) => Ok((name, data)),
        Err(error) => Err(file_error(&name, &error)),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read_up_to(limit: u64, source: impl Read) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    source.take(limit + 1).read_to_end(&mut data)?;
    if data.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
    }
    Ok(data)
}

fn file_error(file: &str, error: &io::Error) -> LoadError {
    LoadError::File { file: file.to_owned(), error: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_files_are_rejected() {
        assert_eq!(read_up_to(3, &b"abc"[..]).expect("as long as may be"), b"abc");
        assert_eq!(read_up_to(3, io::repeat(0)).expect_err("endless").to_string(), "larger than 3 bytes");
    }

    #[test]
    fn linked_files_are_read_once() {
        let root = std::env::temp_dir().join(format!("kube-scheduler-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        // Like a mounted config map, whose files are links into a folder that is a link.
        std::fs::create_dir_all(root.join("..2026")).expect("a folder");
        std::fs::write(root.join("..2026/a.yaml"), "").expect("a file");
        std::os::unix::fs::symlink("..2026", root.join("..data")).expect("a link");
        std::os::unix::fs::symlink("..data/a.yaml", root.join("a.yaml")).expect("a link");
        std::os::unix::fs::symlink("..", root.join("..2026/round")).expect("a link");
        let found = files(&root).expect("one file");
        std::fs::remove_dir_all(&root).expect("the folder goes");
        assert_eq!(found, [root.join("a.yaml")]);
    }
}
