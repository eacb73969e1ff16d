//! The parser of label queries.
//!
//! `in` and `notin` are operators only where an operator is expected, and ordinary words elsewhere.

use std::collections::BTreeSet;

use super::requirement::{Operator, Requirement};
use crate::apimachinery::field_error::{FieldError, FieldErrors};
use crate::k8s::names::qualified_name_errors;

/// Error for a selector that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseSelectorError {
    /// A requirement of the selector is malformed.
    #[error(transparent)]
    Requirement(#[from] FieldErrors),
    /// The query is malformed, or an operator is unknown.
    #[error("{0}")]
    Syntax(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Close,
    Comma,
    Open,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    /// A key, a value, `in` or `notin`.
    Word(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::End => "",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Open => "(",
            Self::Not => "!",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Word(word) => word,
        }
    }
}

/// Splits text into tokens.
/// Follows `apimachinery/pkg/labels/selector.go#Lexer @v1.36.3`. As in upstream, a zero byte ends the token before it, and a zero
/// byte at the beginning of a token ends the whole text.
struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let symbols = [
            ("==", Token::DoubleEquals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::Not),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
            (">", Token::Greater),
            ("<", Token::Less),
        ];
        for (symbol, token) in symbols {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                self.rest = rest.strip_prefix('\0').unwrap_or(rest);
                return token;
            }
        }
        let ends_word = |character| "\0 \t\r\n=!(),><".contains(character);
        let (word, rest) = self.rest.split_at(self.rest.find(ends_word).unwrap_or(self.rest.len()));
        if word.is_empty() {
            self.rest = "";
            return Token::End;
        }
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        Token::Word(word)
    }
}

/// Parser with one token of lookahead. Follows `apimachinery/pkg/labels/selector.go#Parser @v1.36.3`.
struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
}

/// Parses the requirements of a query. Follows `apimachinery/pkg/labels/selector.go#Parser.parse @v1.36.3`.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, ParseSelectorError> {
    let mut lexer = Lexer { rest: text };
    let next = lexer.next();
    let mut parser = Parser { lexer, next };
    let mut requirements = Vec::new();
    loop {
        match parser.next {
            Token::Word(_) | Token::Not => {}
            Token::End => return Ok(requirements),
            other => return syntax(other, ", expected: !, identifier, or 'end of string'"),
        }
        let requirement = parser.requirement();
        requirements.push(
            requirement.map_err(|error| ParseSelectorError::Syntax(format!("unable to parse requirement: {error}")))?,
        );
        match parser.advance() {
            Token::End => return Ok(requirements),
            Token::Comma if matches!(parser.next, Token::Word(_) | Token::Not) => {}
            Token::Comma => return syntax(parser.next, ", expected: identifier after ','"),
            other => return syntax(other, ", expected: ',' or 'end of string'"),
        }
    }
}

fn syntax<T>(found: Token<'_>, expected: &str) -> Result<T, ParseSelectorError> {
    Err(ParseSelectorError::Syntax(format!("found '{}'{expected}", found.text())))
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Token<'a> {
        std::mem::replace(&mut self.next, self.lexer.next())
    }

    fn requirement(&mut self) -> Result<Requirement, ParseSelectorError> {
        let mut token = self.advance();
        let is_negated = token == Token::Not;
        if is_negated {
            token = self.advance();
        }
        let Token::Word(key) = token else { return syntax(token, ", expected: identifier") };
        let complaints = qualified_name_errors(key);
        if !complaints.is_empty() {
            // Upstream passes a nil path here, which is printed as `<nil>`.
            return Err(ParseSelectorError::Syntax(
                FieldError::invalid("<nil>", key, complaints.join("; ")).to_string(),
            ));
        }
        if is_negated {
            return Ok(Requirement::new(key, Operator::DoesNotExist, None, "")?);
        }
        if matches!(self.next, Token::End | Token::Comma) {
            return Ok(Requirement::new(key, Operator::Exists, None, "")?);
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?]),
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Ok(Requirement::new(key, operator, Some(values), "")?)
    }

    fn operator(&mut self) -> Result<Operator, ParseSelectorError> {
        match self.advance() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Equals => Ok(Operator::Equals),
            Token::DoubleEquals => Ok(Operator::DoubleEquals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::GreaterThan),
            Token::Less => Ok(Operator::LessThan),
            other => syntax(other, ", expected: in, notin, =, ==, !=, gt, lt"),
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, ParseSelectorError> {
        if matches!(self.next, Token::End | Token::Comma) {
            return Ok("");
        }
        match self.advance() {
            Token::Word(value) => Ok(value),
            other => syntax(other, ", expected: identifier"),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<&'a str>, ParseSelectorError> {
        let token = self.advance();
        if token != Token::Open {
            return syntax(token, " expected: '('");
        }
        match self.next {
            Token::Word(_) | Token::Comma => {
                let values = self.list()?;
                self.advance();
                Ok(values)
            }
            Token::Close => {
                self.advance();
                Ok(BTreeSet::from([""]))
            }
            other => syntax(other, ", expected: ',', ')' or identifier"),
        }
    }

    /// Parses values up to the closing parenthesis. A comma without a value before or after it adds an empty value.
    /// Follows `apimachinery/pkg/labels/selector.go#Parser.parseIdentifiersList @v1.36.3`.
    fn list(&mut self) -> Result<BTreeSet<&'a str>, ParseSelectorError> {
        let mut values = BTreeSet::new();
        loop {
            match self.advance() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.next {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        other => return syntax(other, ", expected: ',' or ')'"),
                    }
                }
                Token::Comma => {
                    if values.is_empty() {
                        values.insert("");
                    }
                    match self.next {
                        Token::Close => {
                            values.insert("");
                            return Ok(values);
                        }
                        Token::Comma => {
                            values.insert("");
                        }
                        _ => {}
                    }
                }
                other => return syntax(other, ", expected: ',', or identifier"),
            }
        }
    }
}
