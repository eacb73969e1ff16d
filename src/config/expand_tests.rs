//! Tests of [`super`]: fake plugins for the rules, and the in-tree plugins for the default profile.

use super::super::any_args::AnyArgs;
use super::super::types::{ExtensionPoint as Point, Plugin, PluginConfig, Profile};
use super::{ProfileChecker, expand};

/// Fake plugins, named after the points they implement: `f` is Filter, `s` Score, `q` `QueueSort`, `b` Bind,
/// `g` `PlacementGenerate` and `p` `PlacementScore`. `fs1` implements Filter and Score.
fn implements(name: &str, point: Point) -> Option<bool> {
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if letters.is_empty() || !letters.chars().all(|c| "fsqbgp".contains(c)) {
        return None;
    }
    Some(letters.chars().any(|c| match c {
        'f' => point == Point::Filter,
        's' => point == Point::Score,
        'q' => point == Point::QueueSort,
        'b' => point == Point::Bind,
        'g' => point == Point::PlacementGenerate,
        _ => point == Point::PlacementScore,
    }))
}

/// Fills plugin sets from words: `name`, `name=weight`, or `-disabled`.
fn profile(sets: &[(Option<Point>, &str)]) -> Profile {
    let mut profile = Profile { scheduler_name: "a".to_owned(), ..Profile::default() };
    for (point, words) in sets {
        let set = match point {
            Some(point) => profile.plugins.point_mut(*point),
            None => &mut profile.plugins.multi_point,
        };
        for word in words.split_whitespace() {
            if let Some(name) = word.strip_prefix('-') {
                set.disabled.push(Plugin::new(name));
            } else {
                let (name, weight) = word.split_once('=').unwrap_or((word, "0"));
                set.enabled.push(Plugin::new(name).weighted(weight.parse().expect("a weight")));
            }
        }
    }
    profile
}

/// Expands a profile and compares one point, printed as `name` or `name=weight`, or the error.
fn check(sets: &[(Option<Point>, &str)], point: Point, expected: &str) {
    let got = match expand(&profile(sets), &implements) {
        Ok(expanded) => {
            let words = expanded.point(point).iter().map(|plugin| match plugin.weight {
                0 => plugin.name.clone(),
                weight => format!("{}={weight}", plugin.name),
            });
            words.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(got, expected, "{sets:?}");
}

#[test]
fn multi_point_plugins_run_at_the_points_they_implement() {
    check(&[(None, "q b f1 s1=3 fs2")], Point::Filter, "f1 fs2");
    check(&[(None, "q b f1 s1=3 fs2")], Point::Score, "s1=3 fs2=1");
}

#[test]
fn point_settings_disable_override_and_reorder_plugins() {
    let multi = (None, "q b f1 f2 f3");
    check(&[multi, (Some(Point::Filter), "-f2")], Point::Filter, "f1 f3");
    check(&[multi, (Some(Point::Filter), "-* f3")], Point::Filter, "f3");
    check(&[multi, (Some(Point::Filter), "f9 f3 f8 f2")], Point::Filter, "f3 f2 f1 f9 f8");
    check(&[(None, "q b s1=2 s2=3"), (Some(Point::Score), "s2=7")], Point::Score, "s2=7 s1=2");
    check(&[(None, "q b s1=2"), (Some(Point::Score), "s1")], Point::Score, "s1=1");
}

#[test]
fn build_errors_equal_upstreams() {
    check(&[(None, "q b"), (Some(Point::Filter), "Nope")], Point::Filter, "FilterPlugin \"Nope\" does not exist");
    check(&[(None, "q b Nope")], Point::Filter, "PreFilterPlugin \"Nope\" does not exist");
    check(&[(Some(Point::Filter), "s1")], Point::Filter, "plugin \"s1\" does not extend FilterPlugin plugin");
    check(&[(Some(Point::Score), "s1 s1")], Point::Score, "plugin \"s1\" already registered as \"ScorePlugin\"");
    check(&[(None, "q b s1 s1")], Point::Score, "plugin \"s1\" already registered as \"ScorePlugin\"");
    let none = "only one queue sort plugin required for profile with scheduler name \"a\", but got 0";
    check(&[(None, "b")], Point::Bind, none);
    let two = "only one queue sort plugin required for profile with scheduler name \"a\", but got 2";
    check(&[(None, "q1 q2 b")], Point::Bind, two);
    check(&[(None, "q")], Point::Bind, "at least one bind plugin is needed for profile with scheduler name \"a\"");
    let generators = "at most one placement generate plugin is allowed for profile with scheduler name \"a\"";
    check(&[(None, "q b g1 g2")], Point::Bind, generators);
}

#[test]
fn a_repeated_plugin_config_is_an_error() {
    let mut profile = profile(&[(None, "q b")]);
    for _ in 0..2 {
        profile.plugin_config.push(PluginConfig { name: "f1".to_owned(), args: AnyArgs::None });
    }
    assert_eq!(expand(&profile, &implements).expect_err("twice").to_string(), "repeated config for plugin f1");
}

#[test]
fn negative_weights_fail_only_if_the_sum_overflows() {
    check(&[(None, "q b s1=-5")], Point::Score, "s1=-5");
    let overflow = "score plugins: total score of Score plugins could overflow";
    check(&[(None, "q b s1=-5 s2")], Point::Score, overflow);
    let overflow = "placement score plugins: total score of Score plugins could overflow";
    check(&[(None, "q b p1=-5 p2")], Point::PlacementScore, overflow);
}

#[test]
fn profiles_must_share_the_queue_sort() {
    let expanded = |words: &str| expand(&profile(&[(None, words)]), &implements).expect("builds");
    let named = |name: &str| Profile { scheduler_name: name.to_owned(), ..Profile::default() };
    let mut checker = ProfileChecker::default();
    checker.check(&named("a"), &expanded("q1 b")).expect("the first");
    let error = checker.check(&named("b"), &expanded("q2 b")).expect_err("another sort");
    assert_eq!(error.to_string(), "different queue sort plugins for profile \"b\": \"q2\", first: \"q1\"");
    let mut with_args = named("c");
    with_args.plugin_config =
        vec![PluginConfig { name: "q1".to_owned(), args: AnyArgs::Raw(serde_json::Value::Bool(true)) }];
    let error = checker.check(&with_args, &expanded("q1 b")).expect_err("other args");
    assert_eq!(error.to_string(), "different queue sort plugin args for profile \"c\"");
    let error = checker.check(&named("a"), &expanded("q1 b")).expect_err("again");
    assert_eq!(error.to_string(), "duplicate profile with scheduler name \"a\"");
    let error = checker.check(&named(""), &expanded("q1 b")).expect_err("no name");
    assert_eq!(error.to_string(), "scheduler name is needed");
}
