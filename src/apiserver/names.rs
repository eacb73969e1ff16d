//! Names and UIDs that the server generates. They come from a seed, so the same requests get the same names and UIDs.

use crate::clock::Rng;

/// Generator of UIDs and name suffixes.
#[derive(Clone, Debug)]
pub(super) struct Names(Rng);

/// Characters of generated names: no vowels, and no characters that look alike.
/// `apimachinery/pkg/util/rand/rand.go#alphanums @v1.36.3`.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rng::from_seed(seed))
    }

    /// Returns a random (version 4) UUID.
    pub(super) fn uid(&mut self) -> String {
        self.0.uuid()
    }

    /// Returns the five random characters that are appended to `generateName`.
    pub(super) fn suffix(&mut self) -> String {
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            suffix.push(char::from(ALPHABET[self.0.index(ALPHABET.len())]));
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (mut one, mut two, mut other) = (Names::new(7), Names::new(7), Names::new(8));
        let uid = one.uid();
        assert_eq!(uid, two.uid());
        assert_ne!(uid, other.uid());
        assert_eq!((uid.len(), uid.as_bytes()[14], uid.matches('-').count()), (36, b'4', 4));
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert!(one.suffix().bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_ne!(one.suffix(), one.suffix());
    }
}
