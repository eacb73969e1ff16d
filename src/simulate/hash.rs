//! Hashes of pod templates, in the format of the controllers' hashes.

use serde_json::Value;

/// The letters of a hash, without vowels and letters that look alike.
/// Follows `apimachinery/pkg/util/rand/rand.go#SafeEncodeString @v1.36.3`.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns a stable hash of a pod template. Upstream hashes a dump of the template that is specific to Go, so the value differs.
/// Its format and use are the same.
pub(super) fn template_hash(template: &Value) -> String {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_hashes_are_short_stable_and_distinct() {
        let hash = template_hash(&serde_json::json!({"spec": {"a": 1}}));
        assert!((8..=10).contains(&hash.len()), "{hash}");
        assert_eq!(hash, template_hash(&serde_json::json!({"spec": {"a": 1}})));
        assert_ne!(hash, template_hash(&serde_json::json!({"spec": {"a": 2}})));
    }
}
