//! Validation of names and label values, and classification of resource names.
//!
//! The validators return all errors, with upstream's texts. An empty list means that the name is valid.

/// Prefix of the names of huge page resources, followed by the page size.
pub const HUGE_PAGES_PREFIX: &str = "hugepages-";
/// Prefix of the names of resources that limit attachable volumes.
pub const ATTACHABLE_VOLUMES_PREFIX: &str = "attachable-volumes-";
/// Prefix of resource names in quotas.
const REQUESTS_PREFIX: &str = "requests.";
/// The namespace of native resources, as a prefix.
const NATIVE_PREFIX: &str = "kubernetes.io/";
/// Prefix of the implicit extended resource of a device class, followed by the class's name.
/// From `api/resource/v1/types.go#ResourceDeviceClassPrefix @v1.36.3`.
pub const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Maximum bytes of a DNS label, of the name part of a label key, and of a label value.
const LABEL_MAX_LENGTH: usize = 63;
/// Maximum bytes of a DNS subdomain.
const SUBDOMAIN_MAX_LENGTH: usize = 253;

const LABEL_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_REGEX: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE_REGEX: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Validates `value` as a DNS label, and returns the errors.
/// Follows `apimachinery/pkg/util/validation/validation.go#IsDNS1123Label @v1.36.3`.
pub fn dns1123_label_errors(value: &str) -> Vec<String> {
    let mut errors = length_error(value, LABEL_MAX_LENGTH, "characters");
    if !is_label(value) {
        errors.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                 and must start and end with an alphanumeric character",
                LABEL_REGEX,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// Validates `value` as a DNS subdomain, and returns the errors.
/// Follows `apimachinery/pkg/util/validation/validation.go#IsDNS1123Subdomain @v1.36.3`.
pub fn dns1123_subdomain_errors(value: &str) -> Vec<String> {
    subdomain_errors(value, "characters")
}

/// Validates a DNS subdomain. Upstream has this validation twice, with different names for the unit of the length.
fn subdomain_errors(value: &str, unit: &str) -> Vec<String> {
    let mut errors = length_error(value, SUBDOMAIN_MAX_LENGTH, unit);
    if !is_subdomain(value) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            SUBDOMAIN_REGEX,
            &["example.com"],
        ));
    }
    errors
}

/// Validates `value` as a qualified name, such as a label key, and returns the errors. A qualified name is a name with an
/// optional subdomain and slash before it.
/// Follows `apimachinery/pkg/api/validate/content/kube.go#IsLabelKey @v1.36.3`.
pub fn qualified_name_errors(value: &str) -> Vec<String> {
    let key_error = || {
        regex_error(
            "must consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            KEY_REGEX,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut errors = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                key_error()
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            errors.extend(subdomain_errors(prefix, "bytes").into_iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX_LENGTH {
        errors.push(format!("name part must be no more than {LABEL_MAX_LENGTH} bytes"));
    }
    if !is_key_name(name) {
        errors.push(format!("name part {}", key_error()));
    }
    errors
}

/// Validates `value` as the value of a label, and returns the errors.
/// Follows `apimachinery/pkg/api/validate/content/kube.go#IsLabelValue @v1.36.3`.
pub fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = length_error(value, LABEL_MAX_LENGTH, "bytes");
    if !value.is_empty() && !is_key_name(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            VALUE_REGEX,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

fn length_error(value: &str, most: usize, unit: &str) -> Vec<String> {
    if value.len() > most { vec![format!("must be no more than {most} {unit}")] } else { Vec::new() }
}

/// Formats the error for a value that does not match a regular expression.
/// Follows `apimachinery/pkg/api/validate/content/errors.go#RegexError @v1.36.3`.
fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn is_label(value: &str) -> bool {
    is_enclosed(value, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_key_name(value: &str) -> bool {
    is_enclosed(value, |byte| byte.is_ascii_alphanumeric(), |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Returns whether `value` begins and ends with `outer` bytes, and has only `outer` and `inner` bytes in between.
fn is_enclosed(value: &str, outer: fn(u8) -> bool, inner: fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|byte| outer(*byte))
        && bytes.last().is_some_and(|byte| outer(*byte))
        && bytes.iter().all(|byte| outer(*byte) || inner(*byte))
}

/// Returns whether the resource is an extended resource: a qualified name outside of `kubernetes.io` that stays valid with the
/// prefix of quotas.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsExtendedResourceName @v1.36.3`.
pub fn is_extended_resource(name: &str) -> bool {
    !is_native_resource(name)
        && !name.starts_with(REQUESTS_PREFIX)
        && qualified_name_errors(&format!("{REQUESTS_PREFIX}{name}")).is_empty()
}

/// Returns whether the resource's name has a prefix in the `kubernetes.io` namespace.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsPrefixedNativeResource @v1.36.3`.
pub fn is_prefixed_native_resource(name: &str) -> bool {
    name.contains(NATIVE_PREFIX)
}

/// Returns whether the resource is in the `kubernetes.io` namespace. Names without a prefix are in this namespace, too.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsNativeResource @v1.36.3`.
pub fn is_native_resource(name: &str) -> bool {
    !name.contains('/') || is_prefixed_native_resource(name)
}

/// Returns whether the resource is a huge page resource.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsHugePageResourceName @v1.36.3`.
pub fn is_huge_page_resource(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

/// Returns whether the resource is a limit on attachable volumes.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsAttachableVolumeResourceName @v1.36.3`.
pub fn is_attachable_volume_resource(name: &str) -> bool {
    name.starts_with(ATTACHABLE_VOLUMES_PREFIX)
}

/// Returns whether the resource may be overcommitted, that is, whether limits may be higher than requests.
/// Follows `pkg/apis/core/v1/helper/helpers.go#IsOvercommitAllowed @v1.36.3`.
pub fn is_overcommit_allowed(name: &str) -> bool {
    is_native_resource(name) && !is_huge_page_resource(name)
}

/// Returns whether scheduling accounts for the resource by its name, in addition to CPU, memory, ephemeral storage and pods.
/// Follows `pkg/scheduler/util/utils.go#IsScalarResourceName @v1.36.3`.
pub fn is_scalar_resource(name: &str) -> bool {
    is_huge_page_resource(name)
        || is_prefixed_native_resource(name)
        || is_attachable_volume_resource(name)
        || is_extended_resource(name)
}

/// Returns whether a device may provide the resource: an extended resource, or the implicit resource of a device class.
/// Follows `pkg/scheduler/util/utils.go#IsDRAExtendedResourceName @v1.36.3`.
pub fn is_device_resource(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS_PREFIX) || is_extended_resource(name)
}

#[cfg(test)]
mod tests {
    use super::{
        dns1123_label_errors, dns1123_subdomain_errors, is_device_resource, is_extended_resource, is_native_resource,
        is_overcommit_allowed, is_scalar_resource, label_value_errors, qualified_name_errors,
    };

    const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

    fn check(validate: fn(&str) -> Vec<String>, value: &str, expected: &[&str]) {
        assert_eq!(validate(value), expected, "{value:?}");
    }

    #[test]
    fn dns_labels_and_subdomains_are_validated() {
        for good in ["a", "a-b", "0", &"a".repeat(63)] {
            check(dns1123_label_errors, good, &[]);
            check(dns1123_subdomain_errors, good, &[]);
        }
        for bad in ["", "-a", "a-", "A", "a_b", "é", "a\n"] {
            check(dns1123_label_errors, bad, &[LABEL]);
            check(dns1123_subdomain_errors, bad, &[SUBDOMAIN]);
        }
        check(dns1123_label_errors, "a.b", &["must not contain dots"]);
        check(dns1123_subdomain_errors, "a.b-c.d", &[]);
        check(dns1123_subdomain_errors, "a..b", &[SUBDOMAIN]);
        check(dns1123_label_errors, &"a".repeat(64), &["must be no more than 63 characters"]);
        check(dns1123_subdomain_errors, &"a".repeat(254), &["must be no more than 253 characters"]);
        check(dns1123_label_errors, &"-".repeat(64), &["must be no more than 63 characters", LABEL]);
    }

    #[test]
    fn qualified_names_are_validated() {
        for good in ["a", "A_b.c-9", "example.com/Name", &format!("{}/{}", "a".repeat(253), "b".repeat(63))] {
            check(qualified_name_errors, good, &[]);
        }
        let name_part = format!("name part {KEY}");
        check(qualified_name_errors, "", &["name part must be non-empty", &name_part]);
        check(qualified_name_errors, "_a", &[&name_part]);
        check(qualified_name_errors, "/a", &["prefix part must be non-empty"]);
        check(qualified_name_errors, "A/b", &[&format!("prefix part {SUBDOMAIN}")]);
        check(qualified_name_errors, "a/", &["name part must be non-empty", &name_part]);
        let long_prefix = format!("{}/b", "a".repeat(254));
        check(qualified_name_errors, &long_prefix, &["prefix part must be no more than 253 bytes"]);
        check(qualified_name_errors, &"a".repeat(64), &["name part must be no more than 63 bytes"]);
        let slashes = format!(
            "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        );
        check(qualified_name_errors, "a/b/c", &[&slashes]);
    }

    #[test]
    fn label_values_are_validated() {
        for good in ["", "a", "A_b.c-9", &"a".repeat(63)] {
            check(label_value_errors, good, &[]);
        }
        for bad in ["-", "a b", "a/b", "é", ".a"] {
            check(label_value_errors, bad, &[VALUE]);
        }
        check(label_value_errors, &"a".repeat(64), &["must be no more than 63 bytes"]);
    }

    #[test]
    fn resource_names_are_classified() {
        let check = |name: &str, extended: bool, native: bool, scalar: bool| {
            assert_eq!(is_extended_resource(name), extended, "{name} extended");
            assert_eq!(is_native_resource(name), native, "{name} native");
            assert_eq!(is_scalar_resource(name), scalar, "{name} scalar");
        };
        check("cpu", false, true, false);
        check("memory", false, true, false);
        check("hugepages-2Mi", false, true, true);
        check("attachable-volumes-gce-pd", false, true, true);
        check("example.com/gpu", true, false, true);
        check("kubernetes.io/x", false, true, true);
        check("sub.kubernetes.io/x", false, true, true);
        check("requests.example.com/gpu", false, false, false);
        check("exa mple.com/gpu", false, false, false);
        check("a/b/c", false, false, false);
        check(&format!("{}/gpu", "a".repeat(245)), false, false, false);
        assert!(is_device_resource("deviceclass.resource.kubernetes.io/gpu") && is_device_resource("example.com/gpu"));
        assert!(!is_device_resource("cpu"));
        assert!(is_overcommit_allowed("cpu") && !is_overcommit_allowed("hugepages-2Mi"));
        assert!(!is_overcommit_allowed("example.com/gpu"));
    }
}
