//! A scheduler for Kubernetes.
pub mod k8s;
