//! A scheduler for Kubernetes.
pub mod clock;
pub mod config;
pub mod framework;
pub mod k8s;
pub mod listers;
pub mod metrics;
pub mod model;
pub mod queue;
pub mod testing;
