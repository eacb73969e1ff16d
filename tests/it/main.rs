//! Whole schedulers on the embedded API server, and the command as its users see it.

mod certificates;
mod client;
mod command;
mod cycle;
mod election;
mod examples;
mod explain;
mod extender;
mod faults;
mod inputs;
mod metrics;
mod needs;
mod preempted;
mod reference;
mod serve;
mod world;
