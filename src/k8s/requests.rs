//! shim
use super::*;
pub fn node_requests(_pod: &Pod) -> ResourceList {
    ResourceList::default()
}
pub fn spec_requests(_pod: &Pod) -> ResourceList {
    ResourceList::default()
}
