//! Texts of the operating system's errors, as in Go's packages `syscall` and `os`.

use std::io;
use std::path::Path;

/// Texts of Linux errors for which some C libraries have other texts.
/// Follows `syscall/zerrors_linux_amd64.go#errors @go1.26`.
const TEXTS: &[(i32, &str)] = &[
    (libc::EIO, "input/output error"),
    (libc::ENOMEM, "cannot allocate memory"),
    (libc::EBUSY, "device or resource busy"),
    (libc::EXDEV, "invalid cross-device link"),
    (libc::EMFILE, "too many open files"),
    (libc::ENOTTY, "inappropriate ioctl for device"),
    (libc::ESPIPE, "illegal seek"),
    (libc::ENAMETOOLONG, "file name too long"),
    (libc::ELOOP, "too many levels of symbolic links"),
    (libc::EADDRINUSE, "address already in use"),
    (libc::EADDRNOTAVAIL, "cannot assign requested address"),
    (libc::ENETUNREACH, "network is unreachable"),
    (libc::ECONNABORTED, "software caused connection abort"),
    (libc::ENOTCONN, "transport endpoint is not connected"),
    (libc::ETIMEDOUT, "connection timed out"),
    (libc::EHOSTUNREACH, "no route to host"),
    (libc::EDQUOT, "disk quota exceeded"),
];

/// Returns the text of `error` as a Go program prints it: in lower case and without Rust's error number.
pub fn text(error: &io::Error) -> String {
    if let Some(code) = error.raw_os_error() {
        if let Some((_, text)) = TEXTS.iter().find(|(known, _)| *known == code) {
            return (*text).to_owned();
        }
    } else {
        // The text of an error with only a kind differs from the system's.
        match error.kind() {
            io::ErrorKind::NotFound => return "no such file or directory".to_owned(),
            io::ErrorKind::PermissionDenied => return "permission denied".to_owned(),
            io::ErrorKind::IsADirectory => return "is a directory".to_owned(),
            io::ErrorKind::NotADirectory => return "not a directory".to_owned(),
            _ => {}
        }
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Returns the error of an unreadable file, as Go prints it. For a directory, Go fails when it reads, not when it opens.
pub fn file_error(path: &Path, error: &io::Error) -> String {
    let verb = if error.kind() == io::ErrorKind::IsADirectory { "read" } else { "open" };
    format!("{verb} {}: {}", path.display(), text(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_equal_gos() {
        let check = |code: i32, expected: &str| assert_eq!(text(&io::Error::from_raw_os_error(code)), expected);
        check(libc::ENOENT, "no such file or directory");
        check(libc::EACCES, "permission denied");
        check(libc::EPERM, "operation not permitted");
        check(libc::EISDIR, "is a directory");
        check(libc::ENOTDIR, "not a directory");
        check(libc::ECONNREFUSED, "connection refused");
        check(libc::EADDRINUSE, "address already in use");
        check(libc::ELOOP, "too many levels of symbolic links");
        check(libc::EADDRNOTAVAIL, "cannot assign requested address");
        assert_eq!(text(&std::io::Error::other("proxy: no route")), "proxy: no route");
        assert_eq!(text(&io::ErrorKind::NotADirectory.into()), "not a directory");
    }

    #[test]
    fn file_errors_name_the_failed_call() {
        let check = |path: &str, expected: &str| {
            let error = std::fs::read(path).expect_err("it cannot be read");
            assert_eq!(file_error(Path::new(path), &error), expected);
        };
        check("/nowhere/x", "open /nowhere/x: no such file or directory");
        check("/", "read /: is a directory");
    }
}
