//! Texts of the operating system's errors, as Go's package `syscall` has them.

use std::io;

/// Texts of Linux' errors that the C library of some builds words differently.
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

/// The text of `error` as a Go program prints it: without Rust's error number, and beginning in lower case.
pub fn text(error: &io::Error) -> String {
    let known = error.raw_os_error().and_then(|code| TEXTS.iter().find(|(known, _)| *known == code));
    if let Some((_, text)) = known {
        return (*text).to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn system_errors_read_as_in_go() {
        let check = |code: i32, expected: &str| assert_eq!(text(&std::io::Error::from_raw_os_error(code)), expected);
        check(libc::ENOENT, "no such file or directory");
        check(libc::EACCES, "permission denied");
        check(libc::EISDIR, "is a directory");
        check(libc::ENOTDIR, "not a directory");
        check(libc::ECONNREFUSED, "connection refused");
        check(libc::EADDRINUSE, "address already in use");
        check(libc::ELOOP, "too many levels of symbolic links");
        assert_eq!(text(&std::io::Error::other("proxy: no route")), "proxy: no route");
    }
}
