//! Rewrites a source so that it contains every mutation behind a switch. An environment variable selects one mutation when the
//! program starts.
//!
//! `a < b` becomes `(if crate::mutant::is(17) { (a) <= (b) } else { a < b })`. Only one mutant is alive at a time. So a
//! replacement contains plain text, and only the original code contains the switches of the sites within it.

use std::fmt::Write as _;
use std::ops::Range;

use crate::find::{Form, Site};

/// The environment variable that selects a mutant.
pub const VARIABLE: &str = "KUBE_SCHEDULER_MUTANT";

/// Returns the source of the module that the switches call. The module is added to the rewritten crate.
pub fn module() -> String {
    format!(
        "//! Which mutant is alive.\n\n\
         static ALIVE: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {{\n    \
         std::env::var(\"{VARIABLE}\").ok().and_then(|text| text.parse().ok()).unwrap_or(0)\n}});\n\n\
         /// Whether it is this one.\n\
         pub fn is(number: u32) -> bool {{\n    *ALIVE == number\n}}\n"
    )
}

/// A site with the number of each of its changes. `None` for a change that does not compile.
pub struct Numbered<'s> {
    pub site: &'s Site,
    pub numbers: Vec<Option<u32>>,
}

/// A switch in the rewritten text.
pub struct Placed {
    pub range: Range<usize>,
    /// The ranges of the replacements, with the numbers of the mutants.
    pub arms: Vec<(u32, Range<usize>)>,
}

/// Returns the rewritten text, and its switches, the outer before the inner ones.
pub fn rewrite(text: &str, sites: &[Numbered<'_>]) -> (String, Vec<Placed>) {
    let mut writer = Writer { text, out: String::with_capacity(text.len() * 2), placed: Vec::new() };
    writer.write(0..text.len(), sites);
    (writer.out, writer.placed)
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    placed: Vec<Placed>,
}

impl Writer<'_> {
    fn write(&mut self, range: Range<usize>, mut sites: &[Numbered<'_>]) {
        let mut at = range.start;
        while let Some((first, rest)) = sites.split_first() {
            let inner = rest.partition_point(|inner| inner.site.range.start < first.site.range.end);
            self.out.push_str(&self.text[at..first.site.range.start]);
            self.switch(first, &rest[..inner]);
            at = first.site.range.end;
            sites = &rest[inner..];
        }
        self.out.push_str(&self.text[at..range.end]);
    }

    fn switch(&mut self, Numbered { site, numbers }: &Numbered<'_>, inner: &[Numbered<'_>]) {
        if numbers.iter().all(Option::is_none) {
            return self.write(site.range.clone(), inner);
        }
        let start = self.out.len();
        let place = self.placed.len();
        self.placed.push(Placed { range: 0..0, arms: Vec::new() });
        let mut arms = Vec::new();
        if site.form == Form::Expression {
            self.out.push('(');
        }
        for (number, change) in numbers.iter().zip(&site.changes) {
            let Some(number) = number else { continue };
            write!(self.out, "if crate::mutant::is({number}) {{ ").expect("texts can be written to");
            let arm = self.out.len();
            self.out.push_str(&change.code);
            arms.push((*number, arm..self.out.len()));
            self.out.push_str(" } else ");
        }
        self.out.push_str("{ ");
        self.write(site.range.clone(), inner);
        self.out.push_str(if site.form == Form::Expression { " })" } else { " }" });
        self.placed[place] = Placed { range: start..self.out.len(), arms };
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbered, rewrite};
    use crate::find::sites;

    #[track_caller]
    fn check(text: &str, rejected: &[u32], expected: &str) {
        let sites = sites(text).expect("Rust");
        let mut next = 0;
        let number = || {
            next += 1;
            (!rejected.contains(&next)).then_some(next)
        };
        let mut numbers = std::iter::repeat_with(number);
        let numbered: Vec<Numbered<'_>> = sites
            .iter()
            .map(|site| Numbered { site, numbers: numbers.by_ref().take(site.changes.len()).collect() })
            .collect();
        let (found, placed) = rewrite(text, &numbered);
        assert_eq!(found, expected);
        for (number, arm) in placed.iter().flat_map(|switch| &switch.arms) {
            let text = &found[..arm.start];
            assert!(text.ends_with(&format!("if crate::mutant::is({number}) {{ ")), "{text}");
        }
    }

    #[test]
    fn original_branch_has_the_inner_switches() {
        check(
            "fn f() { a + (b + c) }",
            &[],
            "fn f() { (if crate::mutant::is(1) { (a) - ((b + c)) } else { a + \
             ((if crate::mutant::is(2) { (b) - (c) } else { b + c })) }) }",
        );
    }

    #[test]
    fn mutants_that_do_not_compile_are_dropped() {
        let text = "fn f() { a + (b + c) }";
        check(text, &[1], "fn f() { a + ((if crate::mutant::is(2) { (b) - (c) } else { b + c })) }");
        check(text, &[1, 2], text);
    }

    #[test]
    fn statement_mutants_remove_the_statement() {
        check("fn f() { a.b(); }", &[], "fn f() { if crate::mutant::is(1) {  } else { a.b(); } }");
    }
}
