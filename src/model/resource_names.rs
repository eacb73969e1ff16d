//! Which resource names scheduling counts one by one, beside CPU, memory and disk.

use crate::k8s::names::HUGE_PAGES_PREFIX;

/// What quota puts before a resource's name to limit its requests.
/// From `api/core/v1/types.go#DefaultResourceRequestsPrefix @v1.36.3`.
const REQUESTS_PREFIX: &str = "requests.";
/// The domain of the API's own names. From `api/core/v1/types.go#ResourceDefaultNamespacePrefix @v1.36.3`.
const NATIVE_DOMAIN: &str = "kubernetes.io/";
/// What the name of a limit on attached volumes begins with.
/// From `api/core/v1/types.go#ResourceAttachableVolumesPrefix @v1.36.3`.
const ATTACHABLE_VOLUMES_PREFIX: &str = "attachable-volumes-";
/// What the name begins with by which a pod asks for a device class; the class's name follows.
/// From `api/resource/v1/types.go#ResourceDeviceClassPrefix @v1.36.3`.
pub const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";
/// From `apimachinery/pkg/util/validation/validation.go#DNS1123SubdomainMaxLength @v1.36.3`, in bytes.
const MAX_SUBDOMAIN: usize = 253;
/// From `apimachinery/pkg/util/validation/validation.go#qualifiedNameMaxLength @v1.36.3`, in bytes.
const MAX_NAME: usize = 63;

/// Whether scheduling counts the resource by its name: extended resources, huge pages, attachable volumes, and names in the
/// API's own domain. Follows `pkg/scheduler/util/utils.go#IsScalarResourceName @v1.36.3`.
pub fn is_scalar_resource(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
        || name.starts_with(ATTACHABLE_VOLUMES_PREFIX)
        || name.contains(NATIVE_DOMAIN)
        || is_extended_resource(name)
}

/// Whether the resource is neither the API's nor a quota, and has a valid name.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsExtendedResourceName @v1.36.3`.
pub fn is_extended_resource(name: &str) -> bool {
    let Some((domain, rest)) = name.split_once('/') else { return false };
    !name.contains(NATIVE_DOMAIN)
        && !name.starts_with(REQUESTS_PREFIX)
        && REQUESTS_PREFIX.len() + domain.len() <= MAX_SUBDOMAIN
        && domain.split('.').all(is_dns_label)
        && is_name(rest)
}

/// Whether a device class may stand behind the resource.
/// Follows `pkg/scheduler/util/utils.go#IsDRAExtendedResourceName @v1.36.3`.
pub fn is_dra_extended_resource(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS_PREFIX) || is_extended_resource(name)
}

fn is_dns_label(label: &str) -> bool {
    is_framed(label, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && is_framed(name, |byte| byte.is_ascii_alphanumeric(), |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether `text` begins and ends with an `outer` byte and has only `outer` and `inner` ones between.
fn is_framed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&first), Some(&last)) if outer(first) && outer(last))
        && bytes.iter().all(|&byte| outer(byte) || inner(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_names() {
        let check = |name: &str, scalar: bool, extended: bool| {
            assert_eq!((is_scalar_resource(name), is_extended_resource(name)), (scalar, extended), "{name}");
        };
        check("cpu", false, false);
        check("pods", false, false);
        check("unknown", false, false);
        check("hugepages-2Mi", true, false);
        check("attachable-volumes-csi-x", true, false);
        check("kubernetes.io/batch-cpu", true, false);
        check("deviceclass.resource.kubernetes.io/gpu", true, false);
        check("example.com/gpu", true, true);
        check("example.com/GPU_a.b", true, true);
        check("Example.com/gpu", false, false);
        check("example..com/gpu", false, false);
        check("example.com/", false, false);
        check("example.com/-gpu", false, false);
        check("example.com/a/b", false, false);
        check("requests.example.com/gpu", false, false);
        check(&format!("example.com/{}", "a".repeat(63)), true, true);
        check(&format!("example.com/{}", "a".repeat(64)), false, false);
        check(&format!("{}/a", "a".repeat(244)), true, true);
        check(&format!("{}/a", "a".repeat(245)), false, false);
    }

    #[test]
    fn device_classes_may_stand_behind_a_resource() {
        assert!(is_dra_extended_resource("deviceclass.resource.kubernetes.io/gpu"));
        assert!(is_dra_extended_resource("example.com/gpu"));
        assert!(!is_dra_extended_resource("kubernetes.io/gpu"));
    }
}
