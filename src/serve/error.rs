//! Why nothing is served.

use std::path::Path;

use crate::go::errno;

/// Why nothing is served. The text is upstream's, where upstream has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(pub(super) String);

impl ServeError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The bytes of a file, or why not, as Go words it.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let verb = if path.is_dir() { "read" } else { "open" };
    std::fs::read(path).map_err(|error| format!("{verb} {}: {}", path.display(), errno::text(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operating_system_is_quoted_as_go_quotes_it() {
        let check =
            |code: i32, expected: &str| assert_eq!(errno::text(&std::io::Error::from_raw_os_error(code)), expected);
        check(98, "address already in use");
        check(13, "permission denied");
        check(99, "cannot assign requested address");
        assert_eq!(read_file(Path::new("/nowhere/x")), Err("open /nowhere/x: no such file or directory".to_owned()));
        assert_eq!(read_file(Path::new("/")), Err("read /: is a directory".to_owned()));
    }
}
