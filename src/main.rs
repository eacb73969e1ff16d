//! The `kube-scheduler` command.

use std::process::ExitCode;

use kube_scheduler::app::App;

fn main() -> ExitCode {
    App::new().run()
}
