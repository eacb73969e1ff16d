//! The scoring strategies of `NodeResourcesFit`: formulas over amounts. Integers wrap on overflow, as in Go.

use super::args::ScoringStrategy;
use super::scorer::{Amounts, ScoredResource};
use crate::framework::{MAX_NODE_SCORE, PluginError};
use crate::plugins::utilization::{MAX_CURVE_SCORE, UtilizationShapePoint};

/// The utilization, in percent, of a resource that is fully used.
/// Follows `pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go#maxUtilization @v1.36.3`.
const MAX_UTILIZATION: i64 = 100;

/// The strategy by which nodes are scored.
#[derive(Clone, Debug)]
pub(super) enum Strategy {
    /// Prefers nodes with low utilization.
    LeastAllocated,
    /// Prefers nodes with high utilization.
    MostAllocated,
    /// Scores nodes by a curve over utilization.
    RequestedToCapacityRatio(Curve),
}

/// A piecewise linear curve through points of increasing utilization. It is flat before the first and after the last point.
/// Follows `pkg/scheduler/framework/plugins/helper/shape_score.go#BuildBrokenLinearFunction @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct Curve(Vec<Point>);

#[derive(Clone, Copy, Debug)]
struct Point {
    utilization: i64,
    score: i64,
}

impl Curve {
    fn new(shape: &[UtilizationShapePoint]) -> Self {
        let scaled = |point: &UtilizationShapePoint| Point {
            utilization: point.utilization.into(),
            score: i64::from(point.score) * (MAX_NODE_SCORE / i64::from(MAX_CURVE_SCORE)),
        };
        Self(shape.iter().map(scaled).collect())
    }

    fn score(&self, utilization: i64) -> i64 {
        let points = &self.0;
        match points.iter().position(|point| utilization <= point.utilization) {
            Some(0) => points[0].score,
            Some(at) => {
                let (from, to) = (points[at - 1], points[at]);
                let rise = (to.score - from.score).wrapping_mul(utilization - from.utilization);
                from.score + rise / (to.utilization - from.utilization)
            }
            None => points.last().map_or(0, |last| last.score),
        }
    }
}

impl Strategy {
    /// Returns the strategy that `args` select.
    pub(super) fn new(args: &ScoringStrategy) -> Result<Self, PluginError> {
        match args.kind.as_str() {
            "LeastAllocated" => Ok(Self::LeastAllocated),
            "MostAllocated" => Ok(Self::MostAllocated),
            "RequestedToCapacityRatio" => {
                let shape = args.requested_to_capacity_ratio.as_ref().map_or(&[][..], |ratio| &ratio.shape);
                Ok(Self::RequestedToCapacityRatio(Curve::new(shape)))
            }
            kind => Err(PluginError::new(format!("scoring strategy {kind} is not supported"))),
        }
    }

    /// Returns the score of a node with these amounts.
    pub(super) fn score<'a>(&self, amounts: impl Iterator<Item = (&'a ScoredResource, Amounts)>) -> i64 {
        match self {
            Self::LeastAllocated => mean(amounts, least),
            Self::MostAllocated => mean(amounts, most),
            Self::RequestedToCapacityRatio(curve) => curve_mean(amounts, curve),
        }
    }
}

/// Returns the weighted mean of the scores, rounded down, or 0 if there are no amounts.
fn mean<'a>(amounts: impl Iterator<Item = (&'a ScoredResource, Amounts)>, score: impl Fn(Amounts) -> i64) -> i64 {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for (resource, amounts) in amounts {
        sum = sum.wrapping_add(score(amounts).wrapping_mul(resource.weight));
        weights = weights.wrapping_add(resource.weight);
    }
    if weights == 0 { 0 } else { sum.wrapping_div(weights) }
}

/// Returns the unused share of a resource, from 0 to 100.
/// Follows `pkg/scheduler/framework/plugins/noderesources/least_allocated.go#leastRequestedScore @v1.36.3`.
fn least(amounts: Amounts) -> i64 {
    let Amounts { requested, allocatable, .. } = amounts;
    if requested > allocatable {
        return 0;
    }
    allocatable.wrapping_sub(requested).wrapping_mul(MAX_NODE_SCORE).wrapping_div(allocatable)
}

/// Returns the used share of a resource, from 0 to 100.
/// Follows `pkg/scheduler/framework/plugins/noderesources/most_allocated.go#mostRequestedScore @v1.36.3`.
fn most(amounts: Amounts) -> i64 {
    let Amounts { requested, allocatable, .. } = amounts;
    requested.min(allocatable).wrapping_mul(MAX_NODE_SCORE).wrapping_div(allocatable)
}

/// Returns the weighted mean of the scores above 0, rounded to the nearest integer. Scores of 0 and their weights do not count.
/// Follows `pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go#buildRequestedToCapacityRatioScorerFunction
/// @v1.36.3`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with the same types"
)]
fn curve_mean<'a>(amounts: impl Iterator<Item = (&'a ScoredResource, Amounts)>, curve: &Curve) -> i64 {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for (resource, Amounts { requested, allocatable, .. }) in amounts {
        let utilization = if requested > allocatable {
            MAX_UTILIZATION
        } else {
            requested.wrapping_mul(MAX_UTILIZATION).wrapping_div(allocatable)
        };
        let score = curve.score(utilization);
        if score > 0 {
            sum = sum.wrapping_add(score.wrapping_mul(resource.weight));
            weights = weights.wrapping_add(resource.weight);
        }
    }
    if weights == 0 { 0 } else { (sum as f64 / weights as f64).round() as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Rng;
    use crate::plugins::node_resources::args::{RequestedToCapacityRatio, ResourceSpec};
    use crate::plugins::node_resources::scorer::ScoredResources;
    use crate::testing::node;

    fn strategy(kind: &str, points: &[(i32, i32)]) -> Strategy {
        let shape = points.iter().map(|&(utilization, score)| UtilizationShapePoint { utilization, score }).collect();
        let requested_to_capacity_ratio = Some(RequestedToCapacityRatio { shape });
        let args = ScoringStrategy { kind: kind.into(), resources: Vec::new(), requested_to_capacity_ratio };
        Strategy::new(&args).expect("a known strategy")
    }

    /// Checks the score for amounts given as weight, requested and allocatable of each resource.
    fn check(strategy: &Strategy, amounts: &[(i64, i64, i64)], expected: i64) {
        assert_eq!(score(strategy, amounts), expected, "{strategy:?} {amounts:?}");
    }

    fn score(strategy: &Strategy, amounts: &[(i64, i64, i64)]) -> i64 {
        let specs: Vec<ResourceSpec> =
            amounts.iter().map(|(weight, ..)| ResourceSpec { name: "cpu".into(), weight: *weight }).collect();
        let resources = ScoredResources::new(&specs, true);
        let info = node("n").info();
        let requests = vec![0; specs.len()];
        let listed = resources.on(&info, &requests).zip(amounts);
        strategy.score(listed.filter(|(_, (.., allocatable))| *allocatable != 0).map(
            |((resource, _), &(_, requested, allocatable))| {
                (resource, Amounts { requested, allocated: 0, allocatable })
            },
        ))
    }

    #[test]
    fn least_allocated_prefers_free_nodes() {
        let least = strategy("LeastAllocated", &[]);
        check(&least, &[(1, 0, 4000), (1, 0, 8000)], 100);
        check(&least, &[(1, 1000, 4000), (1, 8000, 8000)], 37);
        check(&least, &[(3, 1000, 4000), (1, 8000, 8000)], 56);
        check(&least, &[(1, 4001, 4000)], 0);
        check(&least, &[(1, 5, 0), (2, 1, 3)], 66);
        check(&least, &[(1, 5, 0)], 0);
        check(&least, &[], 0);
        check(&least, &[(1, -100, 100)], 200);
        check(&least, &[(1, 0, i64::MAX)], 0);
    }

    #[test]
    fn most_allocated_prefers_full_nodes() {
        let most = strategy("MostAllocated", &[]);
        check(&most, &[(1, 0, 4000), (1, 0, 8000)], 0);
        check(&most, &[(1, 1000, 4000), (1, 8000, 8000)], 62);
        check(&most, &[(1, 1000, 4000), (3, 8000, 8000)], 81);
        check(&most, &[(1, 4001, 4000)], 100);
        check(&most, &[(1, 1, 3)], 33);
        check(&most, &[], 0);
        check(&most, &[(1, i64::MAX, i64::MAX)], 0);
    }

    #[test]
    fn requested_to_capacity_ratio_follows_the_shape() {
        let rising = strategy("RequestedToCapacityRatio", &[(0, 0), (100, 10)]);
        check(&rising, &[(1, 1000, 4000), (1, 4000, 8000)], 38);
        check(&rising, &[(1, 0, 4000), (1, 4000, 8000)], 50);
        check(&rising, &[(1, 5000, 4000)], 100);
        check(&rising, &[(1, 0, 4000)], 0);
        check(&rising, &[], 0);
        let falling = strategy("RequestedToCapacityRatio", &[(20, 10), (50, 5), (80, 0)]);
        check(&falling, &[(1, 10, 100)], 100);
        check(&falling, &[(1, 20, 100)], 100);
        check(&falling, &[(1, 21, 100)], 99);
        check(&falling, &[(1, 35, 100)], 75);
        check(&falling, &[(1, 50, 100)], 50);
        check(&falling, &[(1, 79, 100)], 2);
        check(&falling, &[(1, 90, 100)], 0);
        check(&falling, &[(5, 90, 100), (1, 50, 100)], 50);
    }

    #[test]
    fn unknown_strategy_is_an_error() {
        let args = ScoringStrategy { kind: "X".into(), resources: Vec::new(), requested_to_capacity_ratio: None };
        let error = Strategy::new(&args).expect_err("unknown");
        assert_eq!(error.to_string(), "scoring strategy X is not supported");
    }

    #[test]
    fn scores_stay_in_range() {
        let strategies = [
            strategy("LeastAllocated", &[]),
            strategy("MostAllocated", &[]),
            strategy("RequestedToCapacityRatio", &[(0, 3), (40, 10), (70, 0), (100, 8)]),
        ];
        for seed in 0..2000 {
            let mut rng = Rng::from_seed(seed);
            let mut below = |limit: u64| i64::try_from(rng.below(limit)).expect("small");
            let amounts: Vec<(i64, i64, i64)> =
                (0..below(5)).map(|_| (1 + below(100), below(1 << 40), below(1 << 40))).collect();
            for strategy in &strategies {
                let score = score(strategy, &amounts);
                assert!((0..=100).contains(&score), "seed {seed}: {score} of {amounts:?} by {strategy:?}");
            }
        }
    }
}
