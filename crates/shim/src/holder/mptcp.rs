//! The kernel's MPTCP.

use super::error::HolderError;
use super::network::Network;
use super::relays::Relays;
use super::subflows::Subflows;
use crate::address::Block;
use crate::choice::CarrierKind;

/// The kernel's MPTCP, or why it is not used.
#[derive(Clone)]
pub(super) enum Mptcp {
    Used(Network, Subflows),
    Unused(String),
}

impl Mptcp {
    /// Sets up the namespace. With QUIC as the carrier of this host's programs, other hosts may still
    /// connect by MPTCP if the kernel has it.
    pub(super) fn set_up(
        own: Block,
        carrier: CarrierKind,
        relays: &Relays,
    ) -> Result<Self, HolderError> {
        let network = Network::create(own);
        let used = network.and_then(|network| {
            let subflows = Subflows::start(&network, relays.clone())?;
            Ok(Self::Used(network, subflows))
        });
        match (used, carrier) {
            (Ok(used), _) => Ok(used),
            (Err(error), CarrierKind::Quic) => Ok(Self::Unused(error.to_string())),
            // Captured packets need a TUN device as well.
            (Err(error @ HolderError::Tun(_)), _) => Err(error),
            (Err(error), _) => Err(HolderError::NoMptcp(Box::new(error))),
        }
    }

    pub(super) fn network(&self) -> Option<&Network> {
        match self {
            Self::Used(network, _) => Some(network),
            Self::Unused(_) => None,
        }
    }

    pub(super) fn subflows(&self) -> Option<&Subflows> {
        match self {
            Self::Used(_, subflows) => Some(subflows),
            Self::Unused(_) => None,
        }
    }
}
