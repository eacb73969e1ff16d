//! A scheduler for Kubernetes.
pub mod config;
pub mod k8s;
