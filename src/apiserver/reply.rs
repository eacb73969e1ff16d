//! Finished replies, in the form that the client accepts.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::accept::Form;
use super::body::{OpenRequest, ReplyBody};
use super::kinds::Kind;
use super::object::Object;
use super::{discovery, events, meta, openapi};
use crate::apimachinery::Status;
use crate::go;

/// A complete reply, not yet tied to its open request.
pub(super) struct Reply {
    code: StatusCode,
    content_type: &'static str,
    retry_after: Option<u32>,
    /// Texts of the `Warning` headers.
    warnings: Vec<String>,
    etag: Option<String>,
    frames: VecDeque<Bytes>,
}

const JSON: &str = "application/json";

impl Reply {
    pub(super) fn frames(code: u16, frames: VecDeque<Bytes>) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, content_type: JSON, retry_after: None, warnings: Vec::new(), etag: None, frames }
    }

    pub(super) fn json(code: u16, value: &Value) -> Self {
        Self::frames(code, [Bytes::from(value.to_string())].into())
    }

    pub(super) fn object(code: u16, kind: &Kind, object: &Object) -> Self {
        if object.version() > 0 {
            return Self::frames(code, [events::view(kind, object)].into());
        }
        // The object of a dry run has no resource version.
        let mut value = object.value();
        meta::metadata(&mut value).remove("resourceVersion");
        events::to_view(kind, &mut value);
        Self::json(code, &value)
    }

    fn status(code: u16, status: &Status) -> Self {
        // Texts and numbers always have a JSON form.
        let text = go::json::to_string(status).unwrap_or_default();
        Self::frames(code, [Bytes::from(text)].into())
    }

    pub(super) fn created() -> Self {
        Self::status(201, &Status::success(201))
    }

    /// Returns the reply to a delete of a kind whose deletes do not return the object.
    pub(super) fn deleted(kind: &Kind, object: &Object) -> Self {
        let mut status = Status::success(0).about(kind.group, kind.plural, object.name());
        object.uid().clone_into(&mut status.details.get_or_insert_default().uid);
        Self::status(200, &status)
    }

    pub(super) fn failure(status: &Status) -> Self {
        let mut reply = Self::status(status.code, status);
        reply.retry_after =
            status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
        reply
    }

    pub(super) fn text(code: u16, text: &'static str) -> Self {
        let reply = Self::frames(code, [Bytes::from_static(text.as_bytes())].into());
        Self { content_type: "text/plain; charset=utf-8", ..reply }
    }

    pub(super) fn bytes(bytes: &'static [u8], content_type: &'static str) -> Self {
        Self { content_type, ..Self::frames(200, [Bytes::from_static(bytes)].into()) }
    }

    pub(super) fn not_found_page() -> Self {
        Self::text(404, "404 page not found\n")
    }

    pub(super) fn page(page: &str) -> Self {
        match page {
            "version" => Self::json(200, &discovery::version()),
            "openapi/v2" => openapi::v2(),
            "healthz" | "livez" | "readyz" => Self::text(200, "ok"),
            _ => Self::not_found_page(),
        }
    }

    /// Returns a JSON document with its own content type and an `ETag` for client caches.
    pub(super) fn document(value: &Value, content_type: &'static str, etag: String) -> Self {
        Self { content_type, etag: Some(etag), ..Self::json(200, value) }
    }

    /// Adds warnings for the client's user.
    pub(super) fn warning(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    /// Converts a JSON reply to YAML if that is the requested form.
    pub(super) fn in_form(self, form: Form) -> Self {
        if form != Form::Yaml || self.content_type != JSON {
            return self;
        }
        let text: Vec<u8> = self.frames.iter().flatten().copied().collect();
        match serde_json::from_slice::<Value>(&text).map(|value| serde_yaml::to_string(&value)) {
            Ok(Ok(yaml)) => Self { content_type: "application/yaml", frames: [yaml.into()].into(), ..self },
            _ => self,
        }
    }

    pub(super) fn response(self, open: OpenRequest) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::plain(self.frames, open));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(tag) = self.etag.and_then(|tag| HeaderValue::from_str(&format!("\"{tag}\"")).ok()) {
            headers.insert(header::ETAG, tag);
            headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        }
        for text in self.warnings {
            // Follows `apimachinery/pkg/util/net/http.go#NewWarningHeader @v1.36.3`.
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

/// Returns the response of a watch request.
pub(super) fn watch_response(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
