//! Tests of the queue as a whole, on plugins whose answers the tests give.

mod attempts;
mod fixture;
mod gating;
mod hints_off;
mod measures;
mod moves;
mod random;
mod registered;
mod timing;
mod updates;
