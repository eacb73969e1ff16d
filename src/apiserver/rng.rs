//! The server's own source of chance: seeded, so that the same requests get the same names and UIDs.

use std::fmt::Write as _;

/// A `SplitMix64` generator: one word of state, full period, good enough for names.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

/// Characters of generated names: no vowels and nothing that reads like another.
/// `apimachinery/pkg/util/rand/rand.go#alphanums @v1.36.3`.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random (version 4) UUID.
    pub(super) fn uid(&mut self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        let bits = bits & !(0xf000_u128 << 64) | (0x4000_u128 << 64);
        let bits = bits & !(0xc000_u128 << 48) | (0x8000_u128 << 48);
        let hex = format!("{bits:032x}");
        let mut uid = String::with_capacity(36);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        write!(uid, "{}", parts.join("-")).expect("a String takes every write");
        uid
    }

    /// The five characters that `generateName` gets.
    pub(super) fn suffix(&mut self) -> String {
        let mut bits = self.next();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            let at = usize::try_from(bits % ALPHABET.len() as u64).expect("below 27");
            suffix.push(char::from(ALPHABET[at]));
            bits /= ALPHABET.len() as u64;
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (mut one, mut two, mut other) = (Rng::new(7), Rng::new(7), Rng::new(8));
        let uid = one.uid();
        assert_eq!(uid, two.uid());
        assert_ne!(uid, other.uid());
        assert_eq!((uid.len(), uid.as_bytes()[14], uid.matches('-').count()), (36, b'4', 4));
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert!(one.suffix().bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_ne!(one.suffix(), one.suffix());
    }
}
