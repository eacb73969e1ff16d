//! Whole schedulers on the embedded API server, and the command as its users see it.

mod command;
mod examples;
mod faults;
