//! The listening socket, which is bound early: a scheduler that cannot bind its port does not start.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::error::ServeError;
use super::options::Options;
use crate::go::errno;

/// Maximum number of connections that wait to be accepted. The kernel's own limit (`somaxconn`) is usually the same.
const BACKLOG: i32 = 4096;

/// Time between two keep-alive probes of a silent connection.
/// Follows `apiserver/pkg/server/secure_serving.go#defaultKeepAlivePeriod @v1.36.3`.
const KEEP_ALIVE: Duration = Duration::from_mins(3);

/// Listens on the configured address. Follows `apiserver/pkg/server/options/serving.go#CreateListener @v1.36.3`.
pub(super) fn bind(options: &Options) -> Result<TcpListener, ServeError> {
    let address = SocketAddr::new(options.bind_address, options.port);
    let listener = if options.bind_address.is_unspecified() {
        // As in Go, an unspecified address means all interfaces of IPv4 and IPv6, if the machine has both.
        let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), options.port);
        match Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)) {
            Ok(socket) => listen(socket, both, options),
            Err(_) => listen_on(address, options),
        }
    } else {
        listen_on(address, options)
    };
    listener.map_err(|error| {
        let text = errno::text(&error);
        ServeError(format!(
            "failed to create listener: failed to listen on {address}: listen tcp {address}: bind: {text}"
        ))
    })
}

fn listen_on(address: SocketAddr, options: &Options) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    listen(socket, address, options)
}

fn listen(socket: Socket, address: SocketAddr, options: &Options) -> std::io::Result<TcpListener> {
    if address.is_ipv6() {
        socket.set_only_v6(!options.bind_address.is_unspecified())?;
    }
    // Go sets SO_REUSEADDR on every listener. A restart then need not wait for lingering connections.
    socket.set_reuse_address(true)?;
    if options.permit_port_sharing {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Turns on keep-alive probes, which detect unreachable peers, and sends small responses without delay.
pub(super) fn keep_alive(stream: &tokio::net::TcpStream) {
    let probes = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE);
    // These options are not essential, so errors are ignored.
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
    let _ = stream.set_nodelay(true);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn port_in_use_is_an_error_with_the_address() {
        let local = |port| Options { bind_address: Ipv4Addr::LOCALHOST.into(), port, ..Options::default() };
        let first = bind(&local(0)).expect("a free port");
        let port = first.local_addr().expect("an address").port();
        let error = bind(&local(port)).expect_err("it is taken").to_string();
        let expected = "failed to create listener: failed to listen on 127.0.0.1:PORT: listen tcp 127.0.0.1:PORT: \
            bind: address already in use";
        assert_eq!(error, expected.replace("PORT", &port.to_string()));
    }

    #[test]
    fn port_can_be_shared_if_permitted() {
        let shared = |port| Options {
            bind_address: Ipv4Addr::LOCALHOST.into(),
            port,
            permit_port_sharing: true,
            ..Options::default()
        };
        let first = bind(&shared(0)).expect("a free port");
        bind(&shared(first.local_addr().expect("an address").port())).expect("it is shared");
    }

    #[test]
    fn unspecified_address_listens_on_ipv4() {
        let listener = bind(&Options { port: 0, ..Options::default() }).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        std::net::TcpStream::connect(("127.0.0.1", port)).expect("IPv4 is listened to");
    }
}
