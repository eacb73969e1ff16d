//! Scheduling and binding cycles, step by step: what each outcome of a plugin or an extender leads to.

mod batching;
mod binding;
mod errors;
mod extenders;
mod failures;
mod nodes;
mod permit;
mod post_filter;
mod pre_bind;
mod preemption;
