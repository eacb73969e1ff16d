//! The copy of the sources that is rewritten and compiled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::hash::hash;

/// Folders that are not copied, because they are packages of their own.
const LEFT_OUT: &[&str] = &["tests/fuzz/", "tests/mutants/"];

/// The files of the package by path, and the folder of their copy.
pub struct Tree {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folder: PathBuf,
}

impl Tree {
    /// Reads all files of the package at `root` that git knows or does not ignore.
    pub fn read(root: &Path, folder: PathBuf) -> Result<Self> {
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git ls-files")?;
        ensure!(list.status.success(), "git ls-files: {}", String::from_utf8_lossy(&list.stderr));
        let names = String::from_utf8(list.stdout)?;
        let names = names.split_terminator('\0').filter(|name| !LEFT_OUT.iter().any(|folder| name.starts_with(folder)));
        let files = names.map(|name| root.join(name)).filter(|path| path.is_file());
        let read = |path: PathBuf| Ok((path.strip_prefix(root)?.to_owned(), fs::read(&path)?));
        Ok(Self { files: files.map(read).collect::<Result<_>>()?, folder })
    }

    /// Returns the folder of the copy.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a hash of the paths and contents of these files.
    pub fn fingerprint(&self) -> u64 {
        hash(self.files.iter().flat_map(|(path, bytes)| [path.as_os_str().as_encoded_bytes(), bytes]))
    }

    /// Returns the text of a file.
    pub fn text(&self, path: &Path) -> Result<&str> {
        let bytes = self.files.get(path).with_context(|| format!("{} is not in the package", path.display()))?;
        Ok(std::str::from_utf8(bytes)?)
    }

    /// Writes the copy, with the texts in `rewritten` instead of the original ones, and deletes all other files in it. A file
    /// that is the same is not touched, so that cargo builds only what has changed.
    pub fn write(&self, rewritten: &BTreeMap<PathBuf, String>) -> Result<()> {
        let mut kept = Vec::new();
        walk(&self.folder, &mut kept)?;
        for path in kept {
            let inside = path.strip_prefix(&self.folder)?;
            if !self.files.contains_key(inside) && !rewritten.contains_key(inside) {
                fs::remove_file(&path)?;
            }
        }
        for (path, bytes) in &self.files {
            if !rewritten.contains_key(path) {
                write_if_other(&self.folder.join(path), bytes)?;
            }
        }
        for (path, text) in rewritten {
            write_if_other(&self.folder.join(path), text.as_bytes())?;
        }
        Ok(())
    }
}

fn write_if_other(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { walk(&path, found)? } else { found.push(path) }
    }
    Ok(())
}
