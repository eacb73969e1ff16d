//! Which form of an answer a request asks for.
//!
//! Follows `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go#NegotiateMediaTypeOptions @v1.36.3`.

use http::header;
use http::request::Parts;

use super::route::Query;
use super::status::Status;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Objects as they are.
    Json,
    /// The same as YAML; streams have no such form.
    Yaml,
    /// Rows of cells, as kubectl prints them.
    Table(Table),
    /// The groups of an API with all of their resources, for discovery alone.
    Groups,
}

/// How a table is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) version: &'static str,
    pub(super) include: Include,
}

/// What a table's rows say of their objects besides the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// What is asked for: not every form fits everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    Objects,
    Stream,
    Discovery,
}

/// The first form of the `Accept` header that can be had; JSON if there is none.
pub(super) fn form(parts: &Parts, query: &Query, answers: Answers) -> Result<Form, Status> {
    let header = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.trim().is_empty() || header == "application/json" {
        return Ok(Form::Json);
    }
    let mut clauses: Vec<Clause> = header.split(',').map(Clause::parse).collect();
    // The better ones first; those that are as good stay in their order.
    clauses.sort_by(|one, two| two.quality.total_cmp(&one.quality));
    let found = clauses.iter().find_map(|clause| clause.form(answers));
    match found {
        Some(Form::Table(table)) => Ok(Form::Table(Table { include: include(query)?, ..table })),
        Some(form) => Ok(form),
        None => Err(Status::not_acceptable()),
    }
}

fn include(query: &Query) -> Result<Include, Status> {
    match query.text("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "None" => Ok(Include::Nothing),
        "Object" => Ok(Include::Object),
        other => Err(Status::bad_request(format!("unrecognized includeObject value: {other:?}"))),
    }
}

/// One choice of the header.
struct Clause<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q").and_then(|(_, value)| value.parse().ok());
        Self { media_type, parameters, quality: quality.unwrap_or(1.0) }
    }

    fn get(&self, key: &str) -> &'a str {
        self.parameters.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }

    fn form(&self, answers: Answers) -> Option<Form> {
        let plain = match self.media_type {
            "application/json" | "application/*" | "*/*" => Form::Json,
            "application/yaml" if answers != Answers::Stream => Form::Yaml,
            _ => return None,
        };
        match (self.get("as"), self.get("g"), self.get("v"), answers) {
            ("", ..) => Some(plain),
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2", Answers::Discovery) if plain == Form::Json => {
                Some(Form::Groups)
            }
            ("Table", "meta.k8s.io", version, Answers::Objects | Answers::Stream) if plain == Form::Json => {
                let version = ["v1", "v1beta1"].into_iter().find(|known| *known == version)?;
                Some(Form::Table(Table { version, include: Include::Metadata }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(accept: &str, answers: Answers, expected: Option<Form>) {
        let (parts, ()) = Request::get("/").header(header::ACCEPT, accept).body(()).unwrap().into_parts();
        assert_eq!(form(&parts, &Query::default(), answers).ok(), expected, "{accept}");
    }

    #[test]
    fn the_first_form_that_can_be_had_is_taken() {
        let table = |version| Form::Table(Table { version, include: Include::Metadata });
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        check(kubectl, Answers::Objects, Some(table("v1")));
        check(kubectl, Answers::Discovery, Some(Form::Json));
        check("application/vnd.kubernetes.protobuf, */*", Answers::Objects, Some(Form::Json));
        check("application/vnd.kubernetes.protobuf", Answers::Objects, None);
        check("application/yaml", Answers::Objects, Some(Form::Yaml));
        check("application/yaml", Answers::Stream, None);
        check("application/json;stream=watch", Answers::Stream, Some(Form::Json));
        check("application/json;q=0.5, application/yaml", Answers::Objects, Some(Form::Yaml));
        check(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            Answers::Discovery,
            Some(Form::Groups),
        );
    }
}
