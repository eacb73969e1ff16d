//! A scheduler for Kubernetes.
pub mod apiserver;
pub mod cache;
pub mod clock;
pub mod config;
pub mod dispatcher;
pub mod engine;
pub mod events;
pub mod framework;
pub mod ingest;
pub mod k8s;
pub mod listers;
pub mod metrics;
pub mod model;
pub mod plugins;
pub mod queue;
pub mod scheduler;
pub mod testing;
