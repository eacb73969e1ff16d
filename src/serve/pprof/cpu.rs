//! CPU profiles: the stack at each signal, which arrives every hundredth of a second of processor time.
//!
//! Profiling costs nothing while no profile is requested. The `pprof` crate takes the samples. Signals inside the C library
//! are ignored, because the interrupted code may hold the locks that unwinding takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pprof::{Frames, ProfilerGuardBuilder, Report};

use super::format::{Function, InlinedCalls, Profile, Sample};
use crate::clock::Clock;

/// Samples per second of processor time. From Go's `runtime/pprof.StartCPUProfile`.
const HERTZ: i32 = 100;

/// Nanoseconds of processor time between two samples.
const PERIOD_NANOS: i64 = 10_000_000;

/// Libraries in which a stack cannot be unwound safely.
const LEFT_OUT: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// Takes CPU profiles, one at a time.
#[derive(Default)]
pub(super) struct Cpu {
    busy: AtomicBool,
}

/// Guard of the one CPU profile that can be taken at a time. It is dropped when the samples have been taken or the client has
/// disconnected.
struct ProfileGuard<'a>(&'a AtomicBool);

impl Drop for ProfileGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Cpu {
    /// Profiles the process for this duration. Fails if another profile is being taken.
    pub(super) async fn profile(&self, clock: &Clock, duration: Duration) -> Result<Profile, String> {
        if self.busy.swap(true, Ordering::AcqRel) {
            return Err("cpu profiling already in use".to_owned());
        }
        let turn = ProfileGuard(&self.busy);
        let began = clock.now();
        // The first profile loads the symbol names, which takes a while.
        let begun = tokio::task::spawn_blocking(|| {
            let builder = ProfilerGuardBuilder::default().frequency(HERTZ).blocklist(&LEFT_OUT);
            builder.build().map_err(|error| error.to_string())
        });
        let guard = super::ended(begun.await)?;
        clock.sleep(duration).await;
        // Resolving the symbol names takes a while, too.
        let taken = tokio::task::spawn_blocking(move || {
            let report = guard.report().build().map_err(|error| error.to_string())?;
            drop(guard);
            Ok(samples(report))
        });
        let samples: Result<Vec<Sample>, String> = super::ended(taken.await);
        drop(turn);
        let profile = Profile {
            kinds: vec![("samples", "count"), ("cpu", "nanoseconds")],
            samples: samples?,
            duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
            period: Some((("cpu", "nanoseconds"), PERIOD_NANOS)),
            ..Profile::default()
        };
        Ok(profile.taken(began.wall.as_nanosecond()))
    }
}

/// Converts the report to samples, the most frequent first.
fn samples(report: Report) -> Vec<Sample> {
    let one = |(frames, count): (Frames, isize)| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let stack: Vec<InlinedCalls> = frames.frames.iter().map(|symbols| place(symbols)).collect();
        Sample { stack, values: vec![count, count.saturating_mul(PERIOD_NANOS)], thread: frames.thread_name }
    };
    let mut samples: Vec<Sample> = report.data.into_iter().map(one).collect();
    samples.sort_by(|a, b| (&b.values, &a.thread, &a.stack).cmp(&(&a.values, &b.thread, &b.stack)));
    samples
}

fn place(symbols: &[pprof::Symbol]) -> InlinedCalls {
    let one = |symbol: &pprof::Symbol| {
        let function = Function {
            name: symbol.name(),
            system_name: symbol.sys_name().into_owned(),
            file: symbol.filename().into_owned(),
        };
        (function, symbol.lineno())
    };
    symbols.iter().map(one).collect()
}
