//! Sets of small indices, such as positions of plugins.

/// Number of indices that the first word of a set holds. It is larger than the number of in-tree plugins.
const INLINE: usize = u128::BITS as usize;

/// A set of indices, one bit each. Indices below 128 need no allocation, unlike with the `fixedbitset` crate. Every queued pod
/// and every cycle has several such sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexSet {
    low: u128,
    /// The indices from 128 on, 128 per word, without trailing zero words.
    rest: Vec<u128>,
}

impl IndexSet {
    /// Adds an index to the set.
    pub fn insert(&mut self, index: usize) {
        let bit = 1 << (index % INLINE);
        match index / INLINE {
            0 => self.low |= bit,
            word => {
                if self.rest.len() < word {
                    self.rest.resize(word, 0);
                }
                self.rest[word - 1] |= bit;
            }
        }
    }

    /// Whether the index is in the set.
    pub fn contains(&self, index: usize) -> bool {
        let word = match index / INLINE {
            0 => self.low,
            word => self.rest.get(word - 1).copied().unwrap_or(0),
        };
        word >> (index % INLINE) & 1 == 1
    }

    /// Whether there is no index in the set.
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.rest.is_empty()
    }

    /// Removes all indices from the set.
    pub fn clear(&mut self) {
        self.low = 0;
        self.rest.clear();
    }

    /// Whether the two sets share an index.
    pub fn intersects(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.rest.iter().zip(&other.rest).any(|(a, b)| a & b != 0)
    }

    /// The indices in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..).zip(std::iter::once(self.low).chain(self.rest.iter().copied())).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(at * INLINE + bit as usize)
            })
        })
    }
}

impl FromIterator<usize> for IndexSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::default();
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::IndexSet;

    #[test]
    fn indices_beyond_the_first_word_are_stored() {
        let numbers = [0, 5, 127, 128, 129, 300];
        let mut set: IndexSet = numbers.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), numbers);
        for number in 0..400 {
            assert_eq!(set.contains(number), numbers.contains(&number), "{number}");
        }
        let check = |number: usize, expected: bool| {
            let other = IndexSet::from_iter([number]);
            assert_eq!((set.intersects(&other), other.intersects(&set)), (expected, expected), "{number}");
        };
        check(5, true);
        check(6, false);
        check(300, true);
        check(301, false);
        check(900, false);
        assert!(IndexSet::default().is_empty() && !set.is_empty());
        assert!(!IndexSet::from_iter([128]).is_empty());
        set.clear();
        assert_eq!(set, IndexSet::default());
    }
}
