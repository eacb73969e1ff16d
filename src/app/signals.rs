//! Signals that the process ignores, because Go's processes do not end on them.

use tokio::signal::unix::{SignalKind, signal};

/// Signals that Go's runtime ignores unless the program handles them, in addition to the real-time signals. HUP, INT and TERM
/// end a process, and QUIT and the signals of faults end it with a dump. From Go's `runtime/sigtab_linux_generic.go`.
/// SIGUSR2 gets a handler once there is something to dump.
const IGNORED: [i32; 9] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];

/// Ignores these signals from now on.
pub(super) fn ignore() {
    for number in IGNORED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
        // A signal whose handler cannot be installed keeps its default action.
        let _ = signal(SignalKind::from_raw(number));
    }
}
