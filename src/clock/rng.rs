//! Randomness as an argument: a small generator that returns the same numbers for the same seed on every machine.

/// Seeded pseudo-random generator: xoshiro256++ (Blackman and Vigna), seeded through splitmix64. Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator whose numbers depend on `seed` alone.
    pub fn from_seed(seed: u64) -> Self {
        let mut seed = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut seed)) }
    }

    /// Creates an independent generator, seeded by one draw from this one. However many numbers are drawn from the new
    /// generator, the sequence of this one stays the same.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self::from_seed(self.next_u64())
    }

    /// Draws 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Draws a number from `0..bound`, uniformly (Lemire's multiplication with rejection).
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below 0 does not exist");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            let low = wide & u128::from(u64::MAX);
            if low >= u128::from(threshold) {
                // The product of two 64-bit numbers shifted by 64 fits 64 bits.
                return u64::try_from(wide >> 64).unwrap_or(u64::MAX);
            }
        }
    }

    /// Draws an index into a list of `len` entries, uniformly.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        let index = self.below(u64::try_from(len).unwrap_or(u64::MAX));
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    /// Draws a number from `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "the shift leaves 53 bits, which an f64 holds exactly")]
        let numerator = (self.next_u64() >> 11) as f64;
        // Half of EPSILON, which is 2⁻⁵².
        numerator * (f64::EPSILON / 2.0)
    }

    /// Returns `true` with probability `numerator` / `denominator`.
    ///
    /// # Panics
    /// If `denominator` is 0.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Draws a random (version 4) UUID.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.next_u64(), self.next_u64());
        let version = high & 0xffff_ffff_ffff_0fff | 0x4000;
        let variant = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            version >> 32,
            version >> 16 & 0xffff,
            version & 0xffff,
            variant >> 48,
            variant & 0xffff_ffff_ffff
        )
    }

    /// Shuffles the entries (Fisher–Yates).
    pub fn shuffle<T>(&mut self, entries: &mut [T]) {
        for last in (1..entries.len()).rev() {
            entries.swap(last, self.index(last + 1));
        }
    }
}

/// Computes one step of splitmix64 (Steele, Lea and Flood).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs of splitmix64 for seed 1234567.
    #[test]
    fn split_mix_returns_the_published_numbers() {
        let mut state = 1_234_567;
        let got: Vec<u64> = (0..3).map(|_| split_mix(&mut state)).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    /// The published first outputs of xoshiro256++ for the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_returns_the_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(got, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_stay_in_range_and_reach_every_value() {
        let mut rng = Rng::from_seed(7);
        let mut seen = [0_u32; 5];
        for _ in 0..5_000 {
            seen[rng.index(5)] += 1;
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit), "{unit}");
        }
        assert!(seen.iter().all(|&count| (800..1_200).contains(&count)), "{seen:?}");
        let hits = (0..10_000).filter(|_| rng.chance(1, 10)).count();
        assert!((900..1_100).contains(&hits), "{hits}");
        assert_eq!(rng.below(1), 0);
    }

    #[test]
    fn draws_from_a_split_generator_do_not_change_its_parent() {
        let (mut one, mut other) = (Rng::from_seed(9), Rng::from_seed(9));
        let mut child = one.split();
        let _ = other.split();
        let drawn: Vec<u64> = (0..3).map(|_| child.next_u64()).collect();
        assert_eq!(one, other);
        assert!(!drawn.contains(&one.next_u64()));
        assert_ne!(Rng::from_seed(1), Rng::from_seed(2));
    }

    #[test]
    fn shuffling_keeps_every_entry() {
        let mut entries: Vec<u32> = (0..50).collect();
        Rng::from_seed(3).shuffle(&mut entries);
        assert_ne!(entries, (0..50).collect::<Vec<_>>());
        entries.sort_unstable();
        assert_eq!(entries, (0..50).collect::<Vec<_>>());
    }
}
