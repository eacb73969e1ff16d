//! Signals that are nobody's business, and end no process of Go's.

use tokio::signal::unix::{SignalKind, signal};

/// Those that Go's runtime takes and forgets unless the program asks for them, beside the real-time ones: HUP, INT and TERM
/// end a process, and QUIT and what follows a fault end it with a dump. From Go's `runtime/sigtab_linux_generic.go`.
/// SIGUSR2 is listened for once there is something to dump.
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

/// Has them do nothing from here on.
pub(super) fn ignore() {
    for number in IGNORED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
        // One that cannot be taken stays as it is; nobody waits for any of them.
        let _ = signal(SignalKind::from_raw(number));
    }
}
