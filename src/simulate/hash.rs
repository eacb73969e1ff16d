//! Hashes of pod templates, in the shape that controllers give them.

use serde_json::Value;

/// The letters of a hash: no vowels, nothing that looks like another letter.
/// Follows `apimachinery/pkg/util/rand/rand.go#SafeEncodeString @v1.36.3`.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A stable hash of a pod template. Upstream hashes a Go-specific dump of the template, so the value differs; shape and
/// use are the same.
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
    fn hashes_are_short_stable_and_apart() {
        let hash = template_hash(&serde_json::json!({"spec": {"a": 1}}));
        assert!((8..=10).contains(&hash.len()), "{hash}");
        assert_eq!(hash, template_hash(&serde_json::json!({"spec": {"a": 1}})));
        assert_ne!(hash, template_hash(&serde_json::json!({"spec": {"a": 2}})));
    }
}
