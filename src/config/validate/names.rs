//! Label keys, label values and resource names.
//!
//! Follows `apimachinery/pkg/api/validate/content/kube.go`, `dns.go` and
//! `pkg/apis/core/v1/helper/helpers.go#IsExtendedResourceName @v1.36.3`.

const LABEL_KEY_MAX: usize = 63;
const LABEL_VALUE_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

/// What is wrong with `key` as a label key, or qualified name: an optional DNS subdomain, a slash, and a name.
pub(super) fn label_key(key: &str) -> Vec<String> {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
                        is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut faults = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults.extend(subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            let fault = format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            );
            return vec![fault];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_KEY_MAX {
        faults.push(format!("name part {}", too_long(LABEL_KEY_MAX)));
    }
    if !is_label_name(name) {
        faults.push(format!("name part {NAME}"));
    }
    faults
}

/// What is wrong with `value` as a label value.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_VALUE_MAX {
        faults.push(too_long(LABEL_VALUE_MAX));
    }
    if !value.is_empty() && !is_label_name(value) {
        let fault = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                     must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        faults.push(fault.to_owned());
    }
    faults
}

/// Whether `name` is that of an extended resource: with a domain that is not Kubernetes' own.
pub(super) fn is_extended_resource(name: &str) -> bool {
    const QUOTA_PREFIX: &str = "requests.";
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native && !name.starts_with(QUOTA_PREFIX) && label_key(&format!("{QUOTA_PREFIX}{name}")).is_empty()
}

fn subdomain(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        faults.push(too_long(SUBDOMAIN_MAX));
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if inner(*first) && inner(*last))
            && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
    };
    if !text.split('.').all(label) {
        let fault = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                     must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        faults.push(fault.to_owned());
    }
    faults
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_label_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys() {
        let valid = ["a", "A.b_c-9", "example.com/a", "a-b.c/D", &"x".repeat(63), &format!("{}/a", "d".repeat(253))];
        for key in valid {
            assert_eq!(label_key(key), Vec::<String>::new(), "{key}");
        }
        let invalid = ["", "-a", "a-", "a b", "/a", "a/", "Ex.com/a", "a..b/c", "a/b/c", &"x".repeat(64)];
        for key in invalid {
            assert!(!label_key(key).is_empty(), "{key}");
        }
        assert_eq!(label_key("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key("")[0], "name part must be non-empty");
        assert_eq!(label_key(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
    }

    #[test]
    fn label_values() {
        for value in ["", "a", "a_b.c-d", "9"] {
            assert_eq!(label_value(value), Vec::<String>::new(), "{value}");
        }
        for value in ["-", "a/b", "é", ".a"] {
            assert_eq!(label_value(value).len(), 1, "{value}");
        }
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 bytes"]);
    }

    #[test]
    fn extended_resources() {
        assert!(is_extended_resource("example.com/gpu"));
        for name in ["cpu", "kubernetes.io/x", "sub.kubernetes.io/x", "requests.example.com/gpu", "Ex.com/a"] {
            assert!(!is_extended_resource(name), "{name}");
        }
    }
}
