//! The lease that is held, as an object of the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::record::Record;
use crate::client::{ApiError, Call, RestClient, Target};
use crate::events::ObjectRef;

/// A lease by its name, and its version that was seen last.
pub struct LeaseLock {
    rest: RestClient,
    namespace: String,
    name: String,
    seen: Option<Lease>,
    writes: Writes,
}

/// Tells of a lock, while it is used, whether a write is on its way.
#[derive(Clone, Default)]
pub(super) struct Writes(Arc<AtomicBool>);

impl Writes {
    /// Whether a write was sent and has not been answered.
    pub(super) fn is_on_its_way(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl LeaseLock {
    /// A lock on this lease; each request gets an answer within `timeout`, or fails.
    pub fn new(rest: RestClient, namespace: &str, name: &str, timeout: Duration) -> Self {
        Self {
            rest: rest.limit(timeout).sending_timeout(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            seen: None,
            writes: Writes::default(),
        }
    }

    /// `namespace/name`, as logs have it.
    pub fn described(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Tells of its writes.
    pub(super) fn writes(&self) -> Writes {
        self.writes.clone()
    }

    /// What events about it refer to.
    pub fn reference(&self) -> ObjectRef {
        let nameless = ObjectMeta::default();
        let meta = self.seen.as_ref().map_or(&nameless, |lease| &lease.metadata);
        ObjectRef::new("coordination.k8s.io/v1", "Lease", meta)
    }

    /// Reads it.
    pub async fn get(&mut self) -> Result<Record, ApiError> {
        let lease = self.send(Call::Get, &self.name).await?;
        Ok(self.see(lease))
    }

    /// Makes it.
    pub async fn create(&mut self, record: &Record) -> Result<(), ApiError> {
        let meta = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata: meta, spec: Some(record.spec()) };
        let lease = self.send(Call::Post(body(&lease)?), "").await?;
        self.see(lease);
        Ok(())
    }

    /// Replaces the version that was seen last.
    pub async fn update(&mut self, record: &Record) -> Result<(), ApiError> {
        let Some(seen) = &self.seen else {
            return Err(ApiError::Request("lease not initialized, call get or create first".to_owned()));
        };
        let lease = Lease { metadata: seen.metadata.clone(), spec: Some(record.spec()) };
        let lease = self.send(Call::Put(body(&lease)?), &self.name).await?;
        self.see(lease);
        Ok(())
    }

    fn see(&mut self, lease: Lease) -> Record {
        let record = lease.spec.as_ref().map(Record::of).unwrap_or_default();
        self.seen = Some(lease);
        record
    }

    async fn send(&self, call: Call, name: &str) -> Result<Lease, ApiError> {
        let target = Target {
            group: "coordination.k8s.io",
            version: "v1",
            namespace: &self.namespace,
            resource: "leases",
            name,
            subresource: "",
        };
        self.writes.0.store(!matches!(call, Call::Get), Ordering::Release);
        let answer = self.rest.send(&call, &target).await;
        self.writes.0.store(false, Ordering::Release);
        let answer = answer?;
        serde_json::from_slice(&answer).map_err(|error| ApiError::Request(format!("{}: {error}", target.path())))
    }
}

fn body(lease: &Lease) -> Result<bytes::Bytes, ApiError> {
    serde_json::to_vec(lease).map(Into::into).map_err(|error| ApiError::Request(error.to_string()))
}
