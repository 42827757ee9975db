//! The addresses that QUIC knows flows by.
//!
//! QUIC tells peers apart by IP address and port. Here every pair of peer and path has an address of
//! its own, `fd00:5c10::N`, which exists only inside this process: `N` is the flow's number.

use std::net::{Ipv6Addr, SocketAddr};

use hawser_endhost::lanes::FlowId;

const PREFIX: u128 = 0xfd00_5c10 << 96;
/// Any port will do.
const PORT: u16 = 4242;

/// The address of a flow.
#[inline]
pub(super) fn address_of(flow: FlowId) -> SocketAddr {
    let ip = Ipv6Addr::from(PREFIX | u128::from(flow.0));
    (ip, PORT).into()
}

/// The flow with this address, if it is one of a flow.
#[inline]
pub(crate) fn flow_at(addr: SocketAddr) -> Option<FlowId> {
    let SocketAddr::V6(addr) = addr else {
        return None;
    };
    let bits = u128::from(*addr.ip());
    let id = bits as u64;
    (bits == PREFIX | u128::from(id)).then_some(FlowId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_for_flows() {
        for id in [1, 7, u64::MAX] {
            assert_eq!(flow_at(address_of(FlowId(id))), Some(FlowId(id)));
        }
        assert_ne!(address_of(FlowId(1)), address_of(FlowId(2)));
        assert_eq!(flow_at("[::1]:4242".parse().unwrap()), None);
        assert_eq!(flow_at("10.0.0.1:4242".parse().unwrap()), None);
    }
}
