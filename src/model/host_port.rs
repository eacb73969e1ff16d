//! Host ports that pods use on their node.

use crate::k8s::ContainerPort;

/// The address that stands for all addresses of a node.
const ANY_IP: &str = "0.0.0.0";

/// A host port on a node, with upstream's defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The port number, never 0.
    pub port: i32,
    /// The protocol: `TCP`, `UDP` or `SCTP`.
    pub protocol: Box<str>,
    /// The address on the host. `0.0.0.0` means all addresses.
    pub ip: Box<str>,
}

impl HostPort {
    /// Returns the host port that a container requests, or `None` if it requests none.
    pub fn of(port: &ContainerPort) -> Option<Self> {
        let text = |value: &Option<String>, default: &str| -> Box<str> {
            value.as_deref().filter(|text| !text.is_empty()).unwrap_or(default).into()
        };
        (port.host_port > 0).then(|| Self {
            port: port.host_port,
            protocol: text(&port.protocol, "TCP"),
            ip: text(&port.host_ip, ANY_IP),
        })
    }

    /// Whether the two ports cannot both be used on one node. Only `0.0.0.0` stands for every address. `::` is an ordinary
    /// address. Follows `kube-scheduler/framework/types.go#HostPortInfo.CheckConflict @v1.36.3`.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (*self.ip == *ANY_IP || *other.ip == *ANY_IP || self.ip == other.ip)
    }
}

/// The host ports in use on a node. As in upstream, this is a set without counts: a port that two pods use becomes free when one
/// of these pods is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPorts(Vec<HostPort>);

impl HostPorts {
    /// Adds a port to the set.
    pub fn add(&mut self, port: &HostPort) {
        if let Err(at) = self.0.binary_search(port) {
            self.0.insert(at, port.clone());
        }
    }

    /// Removes a port from the set.
    pub fn remove(&mut self, port: &HostPort) {
        if let Ok(at) = self.0.binary_search(port) {
            self.0.remove(at);
        }
    }

    /// Whether `port` conflicts with a port in use.
    pub fn conflicts_with(&self, port: &HostPort) -> bool {
        let start = self.0.partition_point(|taken| taken.port < port.port);
        self.0[start..].iter().take_while(|taken| taken.port == port.port).any(|taken| taken.conflicts_with(port))
    }

    /// The ports in use, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &HostPort> {
        self.0.iter()
    }

    /// Whether no port is in use.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(port: i32, protocol: &str, ip: &str) -> HostPort {
        HostPort::of(&ContainerPort {
            host_port: port,
            protocol: Some(protocol.into()),
            host_ip: Some(ip.into()),
            ..ContainerPort::default()
        })
        .expect("a host port")
    }

    #[test]
    fn ports_conflict_by_protocol_and_address() {
        let check = |taken: HostPort, wanted: HostPort, expected: bool| {
            let mut ports = HostPorts::default();
            ports.add(&taken);
            assert_eq!(ports.conflicts_with(&wanted), expected, "{taken:?} {wanted:?}");
        };
        check(port(80, "", ""), port(80, "TCP", "0.0.0.0"), true);
        check(port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.2"), false);
        check(port(80, "TCP", "10.0.0.1"), port(80, "TCP", ""), true);
        check(port(80, "TCP", ""), port(80, "UDP", ""), false);
        check(port(80, "TCP", "::"), port(80, "TCP", "10.0.0.1"), false);
        check(port(80, "TCP", ""), port(81, "TCP", ""), false);
    }

    #[test]
    fn only_positive_host_ports_count() {
        let check = |host_port: i32, taken: bool| {
            let port = ContainerPort { host_port, ..ContainerPort::default() };
            assert_eq!(HostPort::of(&port).is_some(), taken, "{host_port}");
        };
        check(1, true);
        check(0, false);
        check(-1, false);
    }

    #[test]
    fn port_added_twice_is_free_after_one_removal() {
        let mut ports = HostPorts::default();
        ports.add(&port(80, "TCP", ""));
        ports.add(&port(80, "TCP", ""));
        ports.remove(&port(80, "TCP", ""));
        assert!(ports.is_empty());
    }
}
