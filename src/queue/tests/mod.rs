//! Tests of the whole queue with plugins whose answers the tests choose.

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
