//! A scheduler for Kubernetes.
pub mod clock;
pub mod config;
pub mod dispatcher;
pub mod framework;
pub mod k8s;
pub mod listers;
pub mod metrics;
pub mod model;
pub mod plugins;
pub mod testing;
