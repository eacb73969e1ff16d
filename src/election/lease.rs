//! The Lease object that the candidates compete for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::record::Record;
use crate::client::{ApiError, Call, RestClient, Target};
use crate::events::ObjectRef;

/// Reads and writes one lease, and keeps the version that was read or written last.
pub struct LeaseLock {
    rest: RestClient,
    namespace: String,
    name: String,
    /// The lease as returned by the last successful request.
    last: Option<Lease>,
    write_in_flight: WriteInFlight,
}

/// Whether a write of a [`LeaseLock`] is in flight. Can be read while the lock is in use.
#[derive(Clone, Default)]
pub(super) struct WriteInFlight(Arc<AtomicBool>);

impl WriteInFlight {
    /// Returns whether a write was sent and has no response yet.
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl LeaseLock {
    /// Creates a lock on this lease. Each request fails if it has no response within `timeout`.
    pub fn new(rest: RestClient, namespace: &str, name: &str, timeout: Duration) -> Self {
        Self {
            rest: rest.limit(timeout).sending_timeout(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            last: None,
            write_in_flight: WriteInFlight::default(),
        }
    }

    /// Returns `namespace/name` for logs.
    pub fn described(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns a handle that tells whether a write is in flight.
    pub(super) fn write_in_flight(&self) -> WriteInFlight {
        self.write_in_flight.clone()
    }

    /// Returns the reference to the lease for events about it.
    pub fn reference(&self) -> ObjectRef {
        let nameless = ObjectMeta::default();
        let meta = self.last.as_ref().map_or(&nameless, |lease| &lease.metadata);
        ObjectRef::new("coordination.k8s.io/v1", "Lease", meta)
    }

    /// Reads the lease from the API server.
    pub async fn get(&mut self) -> Result<Record, ApiError> {
        let lease = self.send(Call::Get, &self.name).await?;
        Ok(self.keep(lease))
    }

    /// Creates the lease with this record.
    pub async fn create(&mut self, record: &Record) -> Result<(), ApiError> {
        let meta = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let lease = Lease { metadata: meta, spec: Some(record.spec()) };
        let lease = self.send(Call::Post(body(&lease)?), "").await?;
        self.keep(lease);
        Ok(())
    }

    /// Updates the lease to this record. Fails with a conflict if the lease has changed since it was last read or written.
    pub async fn update(&mut self, record: &Record) -> Result<(), ApiError> {
        let Some(last) = &self.last else {
            return Err(ApiError::Request("lease not initialized, call get or create first".to_owned()));
        };
        let lease = Lease { metadata: last.metadata.clone(), spec: Some(record.spec()) };
        let lease = self.send(Call::Put(body(&lease)?), &self.name).await?;
        self.keep(lease);
        Ok(())
    }

    fn keep(&mut self, lease: Lease) -> Record {
        let record = lease.spec.as_ref().map(Record::of).unwrap_or_default();
        self.last = Some(lease);
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
        self.write_in_flight.0.store(!matches!(call, Call::Get), Ordering::Release);
        let response = self.rest.send(&call, &target).await;
        self.write_in_flight.0.store(false, Ordering::Release);
        let response = response?;
        serde_json::from_slice(&response).map_err(|error| ApiError::Request(format!("{}: {error}", target.path())))
    }
}

fn body(lease: &Lease) -> Result<bytes::Bytes, ApiError> {
    serde_json::to_vec(lease).map(Into::into).map_err(|error| ApiError::Request(error.to_string()))
}
