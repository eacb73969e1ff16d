//! The `kube-scheduler` command.
fn main() {}
