//! The AS this host is in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use hawser_address::IsdAsn;

/// The AS this host is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAs {
    /// The AS's number.
    pub isd_as: IsdAsn,
    /// Whether the AS is a core AS of its ISD.
    pub core: bool,
    /// The largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
}

/// Properties of its AS that a host needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalTopology {
    pub(crate) local: LocalAs,
    /// The UDP ports that routers deliver to.
    pub(crate) ports: RangeInclusive<u16>,
    /// The underlay addresses of the border routers by interface.
    pub(crate) routers: BTreeMap<u16, SocketAddr>,
}
