//! Authors of writes: the field manager that a request names.

use http::header;
use http::request::Parts;

use crate::apiserver::route::Query;

/// Field manager that makes a write.
#[derive(Clone, Debug)]
pub(in crate::apiserver) struct Author {
    /// Name of the manager.
    pub(super) manager: String,
    /// Name of the subresource if it is not a part of the object, such as `scale`, otherwise "". Writes through such a
    /// subresource are recorded without a time.
    /// `apimachinery/pkg/util/managedfields/scalehandler.go#ScaleHandler.ToParent @v1.36.3`.
    pub(in crate::apiserver) through: &'static str,
}

impl Author {
    /// Returns the manager that the query names, otherwise the program that the `User-Agent` header names.
    /// Follows `apiserver/pkg/endpoints/handlers/create.go#managerOrUserAgent @v1.36.3`.
    pub(in crate::apiserver) fn of(parts: &Parts, query: &Query) -> Self {
        let named = query.text("fieldManager");
        if !named.is_empty() {
            return Self { manager: named.to_owned(), through: "" };
        }
        let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let program = agent.split('/').next().unwrap_or_default();
        Self { manager: if program.is_empty() { "unknown" } else { program }.to_owned(), through: "" }
    }
}
