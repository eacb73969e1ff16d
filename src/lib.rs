//! A scheduler for Kubernetes.
pub mod clock;
pub mod dispatcher;
pub mod k8s;
pub mod metrics;
