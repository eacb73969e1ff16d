//! Finds the places of a source file that can be mutated.
//!
//! Not mutated are tests, patterns, types, attributes, arguments of macros, and code that is evaluated at compile time, where
//! no environment variable can be read.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ImplItemFn, ItemFn, ItemImpl, ItemMod, ReturnType, Signature, Stmt, Type};

use crate::operators;
use crate::scope::is_for_tests;

/// An expression or a statement, as a range of bytes, with its possible replacements.
pub struct Site {
    pub range: Range<usize>,
    pub form: Form,
    pub changes: Vec<Change>,
}

/// Syntactic form of a site, which decides the form of the switch around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Expression,
    /// A statement, including its semicolon.
    Statement,
}

/// A replacement of a site.
pub struct Change {
    /// The replacement as it is shown in reports.
    pub shown: String,
    /// The replacement as it is compiled, with the parentheses that it needs.
    pub code: String,
}

/// Returns all sites of a source, the outer before the inner ones.
pub fn sites(text: &str) -> Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, sites: BTreeMap::new() };
    finder.visit_file(&file);
    Ok(finder.sites.into_values().collect())
}

struct Finder<'t> {
    text: &'t str,
    /// Sites by their start. Of sites with the same start, the longest comes first.
    sites: BTreeMap<(usize, Reverse<usize>), Site>,
}

impl Finder<'_> {
    fn text_of(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    fn add(&mut self, node: &impl Spanned, form: Form, shown: String, code: String) {
        let range = node.span().byte_range();
        // An expression with attributes cannot be an operand.
        if self.text[range.clone()].starts_with('#') {
            return;
        }
        let key = (range.start, Reverse(range.end));
        let site = self.sites.entry(key).or_insert(Site { range, form, changes: Vec::new() });
        if site.changes.iter().all(|change| change.shown != shown) {
            site.changes.push(Change { shown, code });
        }
    }

    fn change(&mut self, expr: &Expr, to: String) {
        let code = to.clone();
        self.add(expr, Form::Expression, to, code);
    }

    /// Adds the replacements of a condition by `true` and by `false`.
    fn force(&mut self, condition: &Expr) {
        if !has_let(condition) && !matches!(condition, Expr::Lit(_)) {
            self.change(condition, "true".to_owned());
            self.change(condition, "false".to_owned());
        }
    }

    /// Mutates the last expression of a function that returns a bool.
    fn result(&mut self, signature: &Signature, block: &Block) {
        let ReturnType::Type(_, returned) = &signature.output else { return };
        let is_bool = matches!(&**returned, Type::Path(path) if path.path.is_ident("bool"));
        if let (true, Some(Stmt::Expr(last, None))) = (is_bool, block.stmts.last())
            && !matches!(last, Expr::If(_) | Expr::Match(_) | Expr::Block(_))
        {
            self.force(last);
        }
    }

    fn binary(&mut self, expr: &syn::ExprBinary) {
        if has_let(&expr.left) || has_let(&expr.right) {
            return;
        }
        let (left, right) = (self.text_of(&expr.left).to_owned(), self.text_of(&expr.right).to_owned());
        for operator in operators::binary(&expr.op) {
            let shown = format!("{left} {operator} {right}");
            let is_assignment = operator.ends_with('=') && !matches!(*operator, "<=" | ">=" | "==" | "!=");
            let left = if is_assignment { left.clone() } else { format!("({left})") };
            self.add(expr, Form::Expression, shown, format!("{left} {operator} ({right})"));
        }
    }

    fn unary(&mut self, expr: &syn::ExprUnary) {
        if matches!(expr.op, syn::UnOp::Not(_) | syn::UnOp::Neg(_)) {
            let inner = self.text_of(&expr.expr).to_owned();
            self.add(expr, Form::Expression, inner.clone(), inner);
        }
    }

    fn method(&mut self, call: &syn::ExprMethodCall) {
        let name = call.method.to_string();
        let range = call.span().byte_range();
        let at = call.method.span().byte_range();
        let (before, after) = (&self.text[range.start..at.start], &self.text[at.end..range.end]);
        let receiver = self.text_of(&call.receiver).to_owned();
        let rest = &self.text[call.receiver.span().byte_range().end..range.end];
        let mut changes: Vec<String> = Vec::new();
        changes.extend(operators::method(&name).map(|other| format!("{before}{other}{after}")));
        if operators::NEGATED.contains(&&*name) {
            changes.push(format!("!{}", self.text_of(call)));
        }
        if operators::LEFT_OUT.contains(&&*name) {
            changes.push(receiver.clone());
        }
        if operators::OF_BOOL.contains(&&*name) {
            changes.push(format!("(!{receiver}){rest}"));
        }
        if name == "cmp" {
            changes.push(format!("{}.reverse()", self.text_of(call)));
        }
        for code in changes {
            self.add(call, Form::Expression, code.clone(), code);
        }
        if operators::WITH_PREDICATE.contains(&&*name) {
            for argument in &call.args {
                if let Expr::Closure(closure) = argument
                    && !matches!(*closure.body, Expr::Block(_))
                {
                    self.force(&closure.body);
                }
            }
        }
    }
}

/// Whether the expression is a condition with a `let`.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

/// Whether a statement that consists of the expression may be left out.
fn may_go(expr: &Expr) -> bool {
    match expr {
        Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) => true,
        Expr::Binary(binary) => !operators::binary(&binary.op).is_empty(),
        Expr::Try(inner) => may_go(&inner.expr),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) && function.sig.constness.is_none() {
            self.result(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) && function.sig.constness.is_none() {
            self.result(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let shown_only = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let shown_only = shown_only.is_some_and(|name| name.ident == "Debug");
        if !is_for_tests(&block.attrs) && !shown_only {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, array: &'ast syn::ExprRepeat) {
        self.visit_expr(&array.expr);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for statement in &block.stmts {
            if let Stmt::Expr(expr, Some(_)) = statement
                && may_go(expr)
            {
                self.add(statement, Form::Statement, "nothing".to_owned(), String::new());
            }
        }
        visit::visit_block(self, block);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.force(&branch.cond);
        visit::visit_expr_if(self, branch);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.force(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Path(path) => {
                for other in operators::path(path) {
                    self.change(expr, other);
                }
            }
            Expr::Lit(literal) => {
                if let Some(other) = operators::literal(&literal.lit) {
                    self.change(expr, other);
                }
            }
            // The message of an `expect` is not mutated.
            Expr::MethodCall(call) if call.method == "expect" => return self.visit_expr(&call.receiver),
            Expr::MethodCall(call) => self.method(call),
            Expr::Call(call) if matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Some")) => {
                self.change(expr, "None".to_owned());
            }
            Expr::Macro(call) if call.mac.path.is_ident("matches") => {
                let negated = format!("!{}", self.text_of(expr));
                self.change(expr, negated);
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::sites;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let shown = |site: &super::Site| {
            let original = text[site.range.clone()].to_owned();
            site.changes.iter().map(move |change| format!("{original} → {}", change.shown)).collect::<Vec<_>>()
        };
        let found: Vec<String> = sites(text).expect("Rust").iter().flat_map(shown).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn outer_sites_come_before_inner_ones() {
        let expected = ["a < b + 1 → true", "a < b + 1 → false", "a < b + 1 → a <= b + 1", "a < b + 1 → a >= b + 1"];
        let inner = ["b + 1 → b - 1", "1 → 0"];
        check("fn f(a: i32, b: i32) -> bool { a < b + 1 }", &[&expected[..], &inner].concat());
    }

    #[test]
    fn let_conditions_are_not_mutated() {
        check("fn f() { if let Some(a) = b && !c {} }", &["!c → c"]);
    }

    #[test]
    fn predicates_methods_variants_and_statements_are_mutated() {
        check("fn f() { a.any(|b| b.c()) }", &["a.any(|b| b.c()) → a.all(|b| b.c())", "b.c() → true", "b.c() → false"]);
        check("fn f() { QueueingHint::Skip }", &["QueueingHint::Skip → QueueingHint::Queue"]);
        check(
            "fn f() { a -= LEAST; }",
            &["a -= LEAST; → nothing", "a -= LEAST → a += LEAST", "LEAST → LEAST + 1", "LEAST → \"\""],
        );
        check("fn f() { Some(a).expect(\"b\") }", &["Some(a) → None"]);
    }

    #[test]
    fn tests_constants_and_patterns_are_not_mutated() {
        check("const A: i32 = 1 + 1; fn f(a: [u8; 4]) { match a { [1, ..] => {} _ => b!(2) } }", &[]);
        check("#[cfg(test)] mod tests { fn f() -> i32 { 1 } } #[cfg(test)] fn g() -> i32 { 1 }", &[]);
        check("impl Debug for A { fn f() -> i32 { 1 } } const fn h() -> i32 { 1 }", &[]);
    }
}
