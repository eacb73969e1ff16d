//! A scheduler for Kubernetes.
pub mod apiserver;
pub mod k8s;
