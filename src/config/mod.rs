//! shim
pub mod args;
pub mod duration;
pub mod expand;
pub mod gates;
mod plugins;
mod text;
pub mod types;
mod validate {
    pub(super) fn aggregate(e: Vec<String>) -> String {
        e.join(",")
    }
}
pub use args::*;
pub use expand::*;
pub use gates::FeatureGates;
pub use types::*;
impl From<std::time::Duration> for duration::GoDuration {
    fn from(d: std::time::Duration) -> Self {
        duration::GoDuration::from_nanos(d.as_nanos() as i64)
    }
}
