//! Content negotiation: the form of the reply that a request asks for.
//!
//! Follows `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go#NegotiateMediaTypeOptions @v1.36.3`.

use http::request::Parts;

use super::route::Query;
use crate::apimachinery::Status;
use crate::apimachinery::accept::{Clause, accept, clauses};

/// Media types that the 406 message lists.
const SERVED: &[&str] = &["application/json", "application/yaml", "application/json;as=Table;g=meta.k8s.io;v=v1"];

/// Form of a reply's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, with objects unchanged.
    Json,
    /// YAML, which is not available for streams.
    Yaml,
    /// Rows of cells, as kubectl prints them.
    Table(Table),
    /// All API groups with their resources, for discovery only.
    Groups,
}

/// Options of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) version: &'static str,
    pub(super) include: Include,
}

/// Part of the object that each table row includes besides the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Type of reply that a request gets. Not every form is available for every type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    Objects,
    Stream,
    Discovery,
}

/// Returns the first form in the `Accept` header that is available, or JSON if there is no header.
pub(super) fn form(parts: &Parts, query: &Query, answers: Answers) -> Result<Form, Status> {
    let header = accept(&parts.headers);
    if header.trim().is_empty() || header == "application/json" {
        return Ok(Form::Json);
    }
    let found = clauses(&header).iter().find_map(|clause| wanted(clause, answers));
    match found {
        Some(Form::Table(table)) => Ok(Form::Table(Table { include: include(query)?, ..table })),
        Some(form) => Ok(form),
        None => Err(Status::not_acceptable(SERVED)),
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

/// Returns the form that a clause of the header asks for, if it is available.
fn wanted(clause: &Clause, answers: Answers) -> Option<Form> {
    let plain = if clause.wants("application", "json") {
        Form::Json
    } else if clause.wants("application", "yaml") && answers != Answers::Stream {
        Form::Yaml
    } else {
        return None;
    };
    let [group, version, kind] = clause.object().unwrap_or_default();
    match (kind, group, version, answers) {
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

#[cfg(test)]
mod tests {
    use http::{Request, header};

    use super::*;

    fn check(accept: &str, answers: Answers, expected: Option<Form>) {
        let (parts, ()) = Request::get("/").header(header::ACCEPT, accept).body(()).unwrap().into_parts();
        assert_eq!(form(&parts, &Query::default(), answers).ok(), expected, "{accept}");
    }

    #[test]
    fn first_supported_media_type_is_chosen() {
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
