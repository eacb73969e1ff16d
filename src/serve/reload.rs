//! Files that are reloaded while the server runs.
//!
//! Upstream watches the files and also reads them once a minute. Here they are read every [`PERIOD`], which also notices
//! changed symbolic links of mounted secrets. If the new contents are invalid, the previous value stays in use, and the error
//! is logged once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{error, info};

use super::error::read_file;

/// Time between two reads of the files.
pub(super) const PERIOD: Duration = Duration::from_secs(2);

/// A value that is parsed from files and reloaded when they change.
pub(super) struct ReloadedFiles<T> {
    /// Name of the files in messages: `serving-cert::<file>::<file>`.
    name: String,
    files: Vec<PathBuf>,
    parse: fn(&str, &[Vec<u8>]) -> Result<T, String>,
    /// Result of the last successful read. The lock is held for a comparison, and files are read outside it.
    last: Mutex<LastRead<T>>,
}

/// Contents of the files, in their order.
type Contents = Vec<Vec<u8>>;

/// Result of the last read that succeeded.
struct LastRead<T> {
    contents: Contents,
    value: Arc<T>,
    /// Error of the last read, which is logged once.
    trouble: Option<String>,
}

/// Something that can be reloaded, whatever its type.
pub(super) trait Refresh: Send + Sync {
    /// Reads the files again.
    fn refresh(&self);
}

impl<T> ReloadedFiles<T> {
    /// Reads the files for the first time. Unlike in a later read, invalid contents are an error.
    pub(super) fn load(
        purpose: &str,
        files: &[&str],
        parse: fn(&str, &[Vec<u8>]) -> Result<T, String>,
    ) -> Result<Arc<Self>, String> {
        let name = std::iter::once(purpose).chain(files.iter().copied()).collect::<Vec<_>>().join("::");
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let contents = read(&files)?;
        let value = Arc::new(parse(&name, &contents)?);
        let last = Mutex::new(LastRead { contents, value, trouble: None });
        Ok(Arc::new(Self { name, files, parse, last }))
    }

    /// Returns the value of the last valid contents.
    pub(super) fn current(&self) -> Arc<T> {
        self.last().value.clone()
    }

    fn last(&self) -> MutexGuard<'_, LastRead<T>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) -> Result<Option<(Contents, T)>, String> {
        let contents = read(&self.files)?;
        if contents == self.last().contents {
            return Ok(None);
        }
        let value = (self.parse)(&self.name, &contents)?;
        Ok(Some((contents, value)))
    }
}

impl<T: Send + Sync> Refresh for ReloadedFiles<T> {
    fn refresh(&self) {
        match self.changed() {
            Ok(None) => self.last().trouble = None,
            Ok(Some((contents, value))) => {
                *self.last() = LastRead { contents, value: Arc::new(value), trouble: None };
                info!(name = self.name, "Reloaded changed files");
            }
            Err(text) => {
                let mut last = self.last();
                if last.trouble.as_ref() != Some(&text) {
                    error!(
                        name = self.name,
                        err = text,
                        "Failed to reload changed files, keeping the previous contents"
                    );
                    last.trouble = Some(text);
                }
            }
        }
    }
}

fn read(files: &[PathBuf]) -> Result<Contents, String> {
    files.iter().map(|file| read_file(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, contents: &[Vec<u8>]) -> Result<String, String> {
        let text = String::from_utf8(contents.concat()).map_err(|_| format!("{name}: no text"))?;
        if text.is_empty() { Err(format!("missing content for {name:?}")) } else { Ok(text) }
    }

    #[test]
    fn a_file_is_followed_and_what_is_no_use_is_not() {
        let folder = std::env::temp_dir().join(format!("serve-reload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("a");
        let name = file.display().to_string();
        assert_eq!(
            ReloadedFiles::load("p", &[&name], parse).err(),
            Some(format!("open {name}: no such file or directory"))
        );
        std::fs::write(&file, "").expect("written");
        assert_eq!(ReloadedFiles::load("p", &[&name], parse).err(), Some(format!("missing content for \"p::{name}\"")));
        std::fs::write(&file, "one").expect("written");
        let watched = ReloadedFiles::load("p", &[&name], parse).expect("it is there");
        let check = |change: &dyn Fn(), expected: &str| {
            change();
            watched.refresh();
            assert_eq!(*watched.current(), expected);
        };
        check(&|| (), "one");
        check(&|| std::fs::write(&file, "two").expect("written"), "two");
        check(&|| std::fs::write(&file, [0xff]).expect("written"), "two");
        check(&|| std::fs::remove_file(&file).expect("removed"), "two");
        check(&|| std::fs::write(&file, "three").expect("written"), "three");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
