//! Label selectors as queries write them: `a=b,c in (d,e),!f`.
//!
//! Follows `apimachinery/pkg/labels/selector.go#Parse @v1.36.3`.

use super::object::Object;
use super::status::Status;

/// One requirement on labels.
#[derive(Clone, Debug)]
pub(super) struct LabelTerm {
    key: String,
    operator: LabelOperator,
}

#[derive(Clone, Debug)]
enum LabelOperator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelTerm {
    pub(super) fn matches(&self, object: &Object) -> bool {
        let value = object.label(&self.key);
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match &self.operator {
            LabelOperator::Exists => value.is_some(),
            LabelOperator::Absent => value.is_none(),
            LabelOperator::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            LabelOperator::NotIn(values) => value.is_none_or(|value| values.iter().all(|wanted| wanted != value)),
            LabelOperator::Greater(bound) => number().is_some_and(|number| number > *bound),
            LabelOperator::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Reads a selector; requirements come in the order of their keys.
pub(super) fn parse(text: &str) -> Result<Vec<LabelTerm>, Status> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut terms =
        parser.terms().map_err(|error| Status::bad_request(format!("unable to parse requirement: {error}")))?;
    terms.sort_by(|one, two| one.key.cmp(&two.key));
    Ok(terms)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(&rest[..symbol.len()]));
            rest = &rest[symbol.len()..];
        } else {
            let end =
                rest.find(|char: char| char.is_ascii_whitespace() || "=!(),><".contains(char)).unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..end]));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", Token::text)
    }

    fn take(&mut self) -> &'a str {
        let text = self.peek();
        self.at += 1;
        text
    }

    fn word(&mut self) -> Option<&'a str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(text)) => {
                self.at += 1;
                Some(text)
            }
            _ => None,
        }
    }

    fn terms(&mut self) -> Result<Vec<LabelTerm>, String> {
        let mut terms = Vec::new();
        while self.at < self.tokens.len() {
            terms.push(self.term()?);
            match self.take() {
                "," if self.at < self.tokens.len() => {}
                "" => break,
                "," => return Err("found '', expected: identifier after ','".to_owned()),
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
        Ok(terms)
    }

    fn term(&mut self) -> Result<LabelTerm, String> {
        if self.peek() == "!" {
            self.at += 1;
            let key = self.key()?;
            return Ok(LabelTerm { key, operator: LabelOperator::Absent });
        }
        let key = self.key()?;
        let operator = match self.peek() {
            "" | "," => LabelOperator::Exists,
            "=" | "==" => LabelOperator::In(vec![self.value()]),
            "!=" => LabelOperator::NotIn(vec![self.value()]),
            ">" => LabelOperator::Greater(self.number()?),
            "<" => LabelOperator::Less(self.number()?),
            "in" => LabelOperator::In(self.values()?),
            "notin" => LabelOperator::NotIn(self.values()?),
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        Ok(LabelTerm { key, operator })
    }

    fn key(&mut self) -> Result<String, String> {
        let found = self.peek();
        self.word().map(str::to_owned).ok_or_else(|| format!("found '{found}', expected: identifier"))
    }

    /// The value after an operator, which may be missing.
    fn value(&mut self) -> String {
        self.at += 1;
        self.word().unwrap_or_default().to_owned()
    }

    fn number(&mut self) -> Result<i64, String> {
        let text = self.value();
        text.parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        self.at += 1;
        if self.peek() != "(" {
            return Err(format!("found '{}' expected: '('", self.peek()));
        }
        self.at += 1;
        let mut values = Vec::new();
        loop {
            values.push(self.word().unwrap_or_default().to_owned());
            match self.take() {
                "," => {}
                ")" => return Ok(values),
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}
