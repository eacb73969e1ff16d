//! Operating system errors in Go's words.

use std::io;
use std::path::Path;

/// The text of an operating system error as Go prints it: the system's own words in lower case, without the error number.
pub(crate) fn os_text(error: &io::Error) -> String {
    // An error that carries a kind alone has other words than the system's.
    match error.kind() {
        io::ErrorKind::NotFound => return "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => return "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => return "is a directory".to_owned(),
        io::ErrorKind::NotADirectory => return "not a directory".to_owned(),
        _ => {}
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The error of a file that cannot be read, as Go prints it. Go opens a directory, and fails when it reads one.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> String {
    let verb = if error.kind() == io::ErrorKind::IsADirectory { "read" } else { "open" };
    format!("{verb} {}: {}", path.display(), os_text(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_printed_as_go_prints_them() {
        let check = |code: i32, expected: &str| assert_eq!(os_text(&io::Error::from_raw_os_error(code)), expected);
        check(2, "no such file or directory");
        check(13, "permission denied");
        check(20, "not a directory");
        check(98, "address already in use");
        check(99, "cannot assign requested address");
        check(111, "connection refused");
        assert_eq!(os_text(&io::ErrorKind::NotADirectory.into()), "not a directory");
    }

    #[test]
    fn file_errors_name_the_call_that_failed() {
        let check = |path: &str, expected: &str| {
            let error = std::fs::read(path).expect_err("it cannot be read");
            assert_eq!(file_error(Path::new(path), &error), expected);
        };
        check("/nowhere/x", "open /nowhere/x: no such file or directory");
        check("/", "read /: is a directory");
    }
}
