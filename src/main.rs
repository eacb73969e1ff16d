//! Binary of the `kube-scheduler` command.

use std::process::ExitCode;

use kube_scheduler::app::{Allocator, App};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    App::new().run()
}
