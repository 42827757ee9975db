//! Addresses and ports of this host.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use hawser_endhost::Endhost;
use hawser_endhost::responder;
use hawser_endhost::socket::{BindError, Socket};
use hawser_kernel::bind::Refused;

use crate::facts::{Listen, Refusal, Sockets};

pub(super) fn gather(host: &Endhost, listen: Option<SocketAddr>) -> Sockets {
    let any = Socket::bind(host, None).map(|socket| socket.local_addr().host);
    let dispatched = host.port_range() != (0..=0);
    Sockets {
        configured: host.address(),
        any: Some(any.map_err(refusal)),
        listen: listen.map(|address| Listen {
            address,
            refusal: Socket::bind(host, Some(address)).err().map(refusal),
        }),
        // The port is not touched where nothing depends on it.
        dispatcher: dispatched || is_taken(host.address()),
    }
}

/// What becomes of an address where the host is in no network.
pub(super) fn alone(listen: Option<SocketAddr>) -> Sockets {
    Sockets {
        listen: listen.map(|address| Listen {
            address,
            refusal: UdpSocket::bind(address)
                .err()
                .map(|error| Refusal::System(Refused::udp(address, &error))),
        }),
        ..Sockets::default()
    }
}

fn is_taken(ip: Option<IpAddr>) -> bool {
    let ip = ip.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let bound = UdpSocket::bind((ip, responder::PORT));
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

fn refusal(error: BindError) -> Refusal {
    match error {
        BindError::OutsideRange { .. } => Refusal::Outside,
        BindError::NoFreePort { .. } => Refusal::NoFreePort,
        BindError::NoAddress(reason) => Refusal::NoAddress(reason),
        BindError::Refused { addr, source } => Refusal::System(Refused::udp(addr, &source)),
        error => Refusal::Other(error.to_string()),
    }
}
