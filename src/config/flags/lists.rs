//! Flag values that are lists, parsed like pflag and component-base, with their error texts.

use std::collections::BTreeMap;
use std::fmt;

use super::values::{int32, level};
use crate::go::quote::quote;

/// The items of one value, such as `a,b`. A repeated flag adds to the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items(pub Vec<String>);

/// The numbers of one value, such as `1,2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(pub Vec<i32>);

/// The pairs of one value, such as `a=1,b=2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(pub BTreeMap<String, String>);

/// The files of a certificate and its key, and the names to serve it for: `cert,key[:name,name]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertKey {
    /// File with the certificate, followed by its chain.
    pub cert: String,
    /// File with the certificate's key.
    pub key: String,
    /// Domain patterns; if empty, the names in the certificate are used.
    pub names: Vec<String>,
}

/// Log levels of source files: `pattern=N,…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VModule(pub Vec<(String, u32)>);

/// Parses a list of texts. Follows `github.com/spf13/pflag/string_slice.go#readAsCSV`.
pub(super) fn items(text: &str) -> Result<Items, String> {
    if text.is_empty() { Ok(Items::default()) } else { record(text).map(Items) }
}

/// Parses a list of numbers. Follows `github.com/spf13/pflag/int32_slice.go#Set`.
pub(super) fn numbers(text: &str) -> Result<Numbers, String> {
    text.split(',').map(int32).collect::<Result<Vec<i32>, String>>().map(Numbers)
}

/// Parses pairs of keys and values. A value with a single `=` is one pair, including any commas.
/// Follows `github.com/spf13/pflag/string_to_string.go#Set`.
pub(super) fn pairs(text: &str) -> Result<Pairs, String> {
    let parts = match text.matches('=').count() {
        0 => return Err(format!("{text} must be formatted as key=value")),
        1 => vec![text.trim_matches('"').to_owned()],
        _ => record(text)?,
    };
    let pair = |part: String| match part.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("{part} must be formatted as key=value")),
    };
    parts.into_iter().map(pair).collect::<Result<BTreeMap<_, _>, String>>().map(Pairs)
}

/// Parses the files of a certificate and its key.
/// Follows `component-base/cli/flag/namedcertkey_flag.go#NamedCertKey.Set @v1.36.3`.
pub(super) fn cert_key(text: &str) -> Result<CertKey, String> {
    let (files, names) = match text.split_once(':') {
        Some((_, names)) if names.trim().is_empty() => return Err("empty names list is not allowed".to_owned()),
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    match files.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [cert, key] => Ok(CertKey { cert: cert.to_owned(), key: key.to_owned(), names }),
        _ => Err("expected comma separated certificate and key file paths".to_owned()),
    }
}

/// Parses log levels of source files.
/// Follows `component-base/logs/api/v1/pflags.go#vmoduleConfigurationPFlag.Set @v1.36.3`.
pub(super) fn vmodule(text: &str) -> Result<VModule, String> {
    let pattern = |item: &str| match item.split('=').collect::<Vec<_>>()[..] {
        [pattern, number] if !pattern.is_empty() && !number.is_empty() => {
            let number = level(number).map_err(|error| format!("parsing verbosity in {}: {error}", quote(item)))?;
            Ok((pattern.to_owned(), number))
        }
        _ => Err(format!("{} does not have the pattern=N format", quote(item))),
    };
    text.split(',').filter(|item| !item.is_empty()).map(pattern).collect::<Result<_, _>>().map(VModule)
}

/// Parses the first record of comma-separated values, like Go's `encoding/csv`. A field that begins with a quote must end with
/// a quote, and contains two quotes for each quote in its value. Other fields must not contain quotes.
fn record(text: &str) -> Result<Vec<String>, String> {
    let line = text.lines().find(|line| !line.is_empty()).ok_or("EOF")?;
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let column = |at: &str| line.len() - at.len() + 1;
        let (field, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_field(quoted).map_err(|at| {
                format!("parse error on line 1, column {}: extraneous or missing \" in quoted-field", column(at))
            })?
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            if let Some(at) = rest[..end].find('"') {
                let column = column(&rest[at..]);
                return Err(format!("parse error on line 1, column {column}: bare \" in non-quoted-field"));
            }
            (rest[..end].to_owned(), &rest[end..])
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// Parses a field after its opening quote. Returns the field and the text after it, or the text at which parsing failed.
fn quoted_field(text: &str) -> Result<(String, &str), &str> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some(at) = rest.find('"') else { return Err(&rest[rest.len()..]) };
        field.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match after.bytes().next() {
            Some(b'"') => {
                field.push('"');
                rest = &after[1..];
            }
            Some(b',') | None => return Ok((field, after)),
            Some(_) => return Err(&rest[at..]),
        }
    }
}

/// Formats a list as pflag does, without the brackets around it. An item with a comma or a quote is quoted.
pub(super) fn written<'a>(items: impl IntoIterator<Item = &'a String>) -> String {
    let field = |item: &'a String| {
        if item.contains([',', '"', '\n', '\r']) || item.starts_with([' ', '\t']) {
            format!("\"{}\"", item.replace('"', "\"\""))
        } else {
            item.clone()
        }
    };
    items.into_iter().map(field).collect::<Vec<_>>().join(",")
}

impl fmt::Display for CertKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.cert, self.key)?;
        if self.names.is_empty() { Ok(()) } else { write!(f, ":{}", self.names.join(",")) }
    }
}

impl fmt::Display for VModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(|(pattern, level)| format!("{pattern}={level}")).collect();
        f.write_str(&items.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_lists_are_parsed_as_csv() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(items(text).map(|items| items.0), Ok(expected.iter().map(|item| (*item).to_owned()).collect()));
        };
        check("", &[]);
        check("a", &["a"]);
        check("a,b,,c ", &["a", "b", "", "c "]);
        check("\"a,b\",c", &["a,b", "c"]);
        check("\"a\"\"b\"", &["a\"b"]);
        let fails = |text: &str, expected: &str| assert_eq!(items(text), Err(expected.to_owned()), "{text}");
        fails("\"", "parse error on line 1, column 2: extraneous or missing \" in quoted-field");
        fails("\"a\"b", "parse error on line 1, column 3: extraneous or missing \" in quoted-field");
        fails("a,b\"", "parse error on line 1, column 4: bare \" in non-quoted-field");
        assert_eq!(written(&["a,b".to_owned(), "c".to_owned()]), "\"a,b\",c");
    }

    #[test]
    fn pairs_are_split_into_key_and_value() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            assert_eq!(pairs(text).map(|pairs| pairs.0), Ok(expected), "{text}");
        };
        check("a=1", &[("a", "1")]);
        check("a,b=1,2", &[("a,b", "1,2")]);
        check("a=1,b=2", &[("a", "1"), ("b", "2")]);
        check("\"a,b=1,2\",c=3", &[("a,b", "1,2"), ("c", "3")]);
        assert_eq!(pairs("x"), Err("x must be formatted as key=value".to_owned()));
        assert_eq!(pairs("a=1,x,b=2"), Err("x must be formatted as key=value".to_owned()));
    }

    #[test]
    fn sni_certificates_have_optional_names() {
        let check = |text: &str, cert: &str, key: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(cert_key(text), Ok(CertKey { cert: cert.to_owned(), key: key.to_owned(), names }), "{text}");
        };
        check("a.crt, a.key", "a.crt", "a.key", &[]);
        check("a.crt,a.key: *.example.com , b", "a.crt", "a.key", &["*.example.com", "b"]);
        let files = "expected comma separated certificate and key file paths";
        assert_eq!(cert_key("a"), Err(files.to_owned()));
        assert_eq!(cert_key("a,b,c"), Err(files.to_owned()));
        assert_eq!(cert_key("a,b: "), Err("empty names list is not allowed".to_owned()));
    }

    #[test]
    fn vmodule_patterns_are_parsed() {
        assert_eq!(vmodule("queue=4,sched*=2,").map(|levels| levels.to_string()), Ok("queue=4,sched*=2".to_owned()));
        assert_eq!(vmodule("x"), Err("\"x\" does not have the pattern=N format".to_owned()));
        let text = "parsing verbosity in \"x=y\": strconv.ParseUint: parsing \"y\": invalid syntax";
        assert_eq!(vmodule("x=y"), Err(text.to_owned()));
    }
}
