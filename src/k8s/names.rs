//! shim
pub fn is_scalar_resource(_name: &str) -> bool {
    true
}
