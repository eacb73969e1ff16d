//! Logs in klog's formats, text or JSON, so that they can be read like upstream's.
//!
//! `-v` and `--vmodule` set the verbosity: upstream's levels 0 and 1 are INFO here, 2 and 3 are DEBUG, and higher ones are TRACE.
//! Follows `k8s.io/klog/v2/klog.go#loggingT.formatHeader`, `k8s.io/klog/v2/internal/serialize` and
//! `component-base/logs/json @v1.36.3`.

mod fields;
mod json;
mod levels;
mod text;

use std::io::Write as _;

use jiff::tz::TimeZone;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock::Clock;
use crate::config::flags::LogFormat;
use fields::Fields;
pub(super) use levels::Verbosity;

/// Layer that writes each event to stderr.
struct Lines {
    format: LogFormat,
    verbosity: Verbosity,
    process: u32,
    clock: Clock,
    zone: TimeZone,
}

/// Starts logging to stderr. If a process runs several `App`s, as tests do, the log of the first one stays in use.
pub(super) fn start(format: LogFormat, verbosity: &Verbosity) {
    let (process, clock, zone) = (std::process::id(), Clock::real(), TimeZone::system());
    let lines = Lines { format, verbosity: verbosity.clone(), process, clock, zone };
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.verbosity.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<tracing_subscriber::filter::LevelFilter> {
        Some(self.verbosity.most())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let fields = Fields::of(event);
        let now = self.clock.now().wall.to_zoned(self.zone.clone());
        let line = match self.format {
            LogFormat::Text => text::line(event.metadata(), &fields, &now, self.process),
            LogFormat::Json => json::line(event.metadata(), &fields, &now),
        };
        // If stderr is closed, there is no other place to report it.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Returns the file's name without its directories, as in klog's header.
fn file_name<'a>(metadata: &Metadata<'a>) -> &'a str {
    let file = metadata.file().unwrap_or("unknown");
    file.rsplit('/').next().unwrap_or(file)
}
