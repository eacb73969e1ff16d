//! Makes a failing case smaller for as long as it fails in the same way.

use serde_json::Value;

use super::case::{Case, tidy};

/// How often the smaller cases are tried.
const TRIES: usize = 3000;

/// The smallest case found for which `fails` still holds: objects, changes and then fields are left out one by one.
pub(crate) fn shrink(case: &Case, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = TRIES;
    loop {
        let before = best.clone();
        drop_each(&mut best, |case| &mut case.events, &mut left, &mut fails);
        drop_each(&mut best, |case| &mut case.objects, &mut left, &mut fails);
        if !best.config.is_null() {
            let mut smaller = best.clone();
            smaller.config = Value::Null;
            keep_if(&mut best, smaller, &mut left, &mut fails);
        }
        drop_fields(&mut best, &mut left, &mut fails);
        if best == before || left == 0 {
            return best;
        }
    }
}

/// The case without the changes and objects that `holds` can do without.
pub(crate) fn drop_objects(case: &Case, mut holds: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = TRIES;
    drop_each(&mut best, |case| &mut case.events, &mut left, &mut holds);
    drop_each(&mut best, |case| &mut case.objects, &mut left, &mut holds);
    best
}

fn keep_if(best: &mut Case, smaller: Case, left: &mut usize, fails: &mut impl FnMut(&Case) -> bool) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let keeps = fails(&smaller);
    if keeps {
        *best = smaller;
    }
    keeps
}

fn drop_each(
    best: &mut Case,
    part: impl Fn(&mut Case) -> &mut Vec<Value>,
    left: &mut usize,
    fails: &mut impl FnMut(&Case) -> bool,
) {
    let mut at = 0;
    while at < part(best).len() {
        let mut smaller = best.clone();
        part(&mut smaller).remove(at);
        if !keep_if(best, smaller, left, fails) {
            at += 1;
        }
    }
}

/// What a path through a value goes by.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// Where the fields and entries of a value are, inner ones last.
fn places(value: &Value, at: &[Step], found: &mut Vec<Vec<Step>>) {
    let mut visit = |step: Step, inner: &Value| {
        let place = [at, &[step]].concat();
        found.push(place.clone());
        places(inner, &place, found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| visit(Step::Key(key.clone()), inner)),
        Value::Array(list) => list.iter().enumerate().for_each(|(at, inner)| visit(Step::Index(at), inner)),
        _ => {}
    }
}

/// Takes out what is at this place; says whether there was anything.
fn take(value: &mut Value, place: &[Step]) -> bool {
    let [first, rest @ ..] = place else { return false };
    match (first, value) {
        (Step::Key(key), Value::Object(fields)) if rest.is_empty() => fields.remove(key).is_some(),
        (Step::Index(at), Value::Array(list)) if rest.is_empty() && *at < list.len() => {
            list.remove(*at);
            true
        }
        (Step::Key(key), Value::Object(fields)) => fields.get_mut(key).is_some_and(|inner| take(inner, rest)),
        (Step::Index(at), Value::Array(list)) => list.get_mut(*at).is_some_and(|inner| take(inner, rest)),
        _ => false,
    }
}

/// Names are left alone: they say what is spoken of.
fn is_identity(place: &[Step]) -> bool {
    match place {
        [Step::Key(key)] => matches!(key.as_str(), "kind" | "apiVersion" | "metadata"),
        [Step::Key(meta), Step::Key(key)] if meta == "metadata" => matches!(key.as_str(), "name" | "namespace" | "uid"),
        _ => false,
    }
}

fn drop_fields(best: &mut Case, left: &mut usize, fails: &mut impl FnMut(&Case) -> bool) {
    for object in (0..best.objects.len()).rev() {
        let mut found = Vec::new();
        places(&best.objects[object], &[], &mut found);
        // From the last one on, so that indices of earlier entries stay what they are.
        for place in found.into_iter().rev().filter(|place| !is_identity(place)) {
            let mut smaller = best.clone();
            if take(&mut smaller.objects[object], &place) {
                tidy(&mut smaller.objects[object]);
                keep_if(best, smaller, left, fails);
            }
        }
    }
    let mut found = Vec::new();
    places(&best.config, &[], &mut found);
    for place in found.into_iter().rev() {
        let mut smaller = best.clone();
        if take(&mut smaller.config, &place) {
            keep_if(best, smaller, left, fails);
        }
    }
}
