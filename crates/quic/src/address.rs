//! The addresses QUIC knows flows by.
//!
//! QUIC tells peers apart by IP address and port. Here every pair of peer and path has an address
//! of its own, `fd00:5c10::N`, which exists only inside this process: `N` is the flow's number.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use hawser_endhost::lanes::FlowId;

/// The first half of all such addresses.
const PREFIX: u128 = 0xfd00_5c10 << 96;
/// Any port will do.
const PORT: u16 = 4242;

/// The address of a flow.
#[inline]
pub(crate) fn of(flow: FlowId) -> SocketAddr {
    let ip = Ipv6Addr::from(PREFIX | u128::from(flow.0));
    SocketAddr::V6(SocketAddrV6::new(ip, PORT, 0, 0))
}

/// The flow with this address, if it is one of a flow.
#[inline]
pub(crate) fn flow(addr: SocketAddr) -> Option<FlowId> {
    match addr {
        SocketAddr::V6(addr) => {
            let bits = u128::from(*addr.ip());
            let id = bits as u64;
            (bits == PREFIX | u128::from(id)).then_some(FlowId(id))
        }
        SocketAddr::V4(_) => None,
    }
}

/// The address of this endpoint inside QUIC; no flow has the number 0.
pub(crate) fn local() -> SocketAddr {
    of(FlowId(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_for_flows() {
        for id in [1, 7, u64::MAX] {
            assert_eq!(flow(of(FlowId(id))), Some(FlowId(id)));
        }
        assert_ne!(of(FlowId(1)), of(FlowId(2)));
        assert_eq!(flow("[::1]:4242".parse().unwrap()), None);
        assert_eq!(flow("10.0.0.1:4242".parse().unwrap()), None);
    }
}
