//! Fixtures for all tests: the programs, a control plane of them, and the reading of the audit log.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod schedulers;
pub(crate) mod stage;

#[expect(dead_code, reason = "shared with the tests on loopback sockets, which use more of it")]
#[path = "../../it/serve/client.rs"]
pub(crate) mod client;
#[expect(dead_code, reason = "shared with the tests on the embedded server, which use more of it")]
#[path = "../../it/world/webhook.rs"]
pub(crate) mod webhook;
