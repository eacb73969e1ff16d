//! The kube-scheduler with one additional plugin. Everything else, including flags and configuration, is unchanged.

use std::process::ExitCode;

use kube_scheduler::app::{Allocator, App};

pub mod hint_node;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    App::new().with_plugin(hint_node::NAME, hint_node::factory).run()
}
