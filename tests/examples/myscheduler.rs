//! The kube-scheduler with one more plugin: everything else, flags and configuration included, is as it was.

use std::process::ExitCode;

use kube_scheduler::app::{Allocator, App};

pub mod hint_node;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    App::new().with_plugin(hint_node::NAME, hint_node::factory).run()
}
