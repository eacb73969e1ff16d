//! The default normalization of scores to the range from 0 to a maximum.

use crate::framework::NodeScores;

/// Scales the scores so that the highest becomes `max`. With `reverse`, the scores are subtracted from `max` afterwards. If no
/// score is above 0, the scores stay unchanged, or all become `max` with `reverse`.
/// Follows `pkg/scheduler/framework/plugins/helper/normalize_score.go#DefaultNormalizeScore @v1.36.3`.
pub fn default_normalize_score(max: i64, reverse: bool, scores: &mut NodeScores<'_>) {
    let greatest = scores.scores.iter().copied().fold(0, i64::max);
    for score in scores.scores.iter_mut() {
        if greatest > 0 {
            let scaled = max.wrapping_mul(*score) / greatest;
            *score = if reverse { max - scaled } else { scaled };
        } else if reverse {
            *score = max;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reverse: bool, scores: &[i64], expected: &[i64]) {
        let mut normalized = scores.to_vec();
        let mut list = NodeScores { nodes: &[], scores: &mut normalized, scratch: &[] };
        default_normalize_score(100, reverse, &mut list);
        assert_eq!(normalized, expected, "{scores:?}");
    }

    #[test]
    fn scores_are_scaled_to_the_maximum() {
        check(false, &[1, 2, 3, 4], &[25, 50, 75, 100]);
        check(false, &[1, 3], &[33, 100]);
        check(false, &[1000, 10, 9], &[100, 1, 0]);
        check(false, &[0, 0], &[0, 0]);
        check(false, &[], &[]);
    }

    #[test]
    fn reversed_scores_are_subtracted_from_the_maximum() {
        check(true, &[1, 2, 3, 4], &[75, 50, 25, 0]);
        check(true, &[1, 3, 0], &[67, 0, 100]);
        check(true, &[0, 0], &[100, 100]);
    }
}
