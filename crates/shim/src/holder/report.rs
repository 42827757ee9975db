//! Holder status reports.

use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use hawser_mptcp::{Info, InfoError, TcpState};

use crate::address::Block;
use crate::report::{SubflowReport, SubflowState, Traffic};

/// What happens to the connections of programs on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A program has connected.
    Began {
        /// What it connects to.
        destination: SocketAddr,
        /// The other host, as this one's kernel sees it; `None` if the connection goes over IP.
        peer: Option<Ipv6Addr>,
    },
    /// A connection failed, for this reason.
    Failed(String),
}

/// What a connection carries.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub sent: u64,
    pub received: u64,
    pub reinjected: u64,
    pub subflows: Vec<SubflowReport>,
}

/// What the connection to the other holder carries.
pub(super) fn carried(peer: &impl AsFd) -> Result<Carried, InfoError> {
    let info = Info::read(peer)?;
    let slot = |address: SocketAddr| match address {
        SocketAddr::V6(address) => Block::split(*address.ip()).map(|(_, slot)| slot),
        SocketAddr::V4(_) => None,
    };
    let subflows = info.subflows.iter().map(|one| SubflowReport {
        id: one.number,
        slot: slot(one.local).max(slot(one.remote)),
        path: None,
        state: match one.state {
            TcpState::Opening => SubflowState::Opening,
            TcpState::Established => SubflowState::Open,
            _ => SubflowState::Closing,
        },
        rtt_ms: one.rtt.as_secs_f64() * 1e3,
        congestion_window_bytes: u64::from(one.congestion_window) * u64::from(one.segment),
        traffic: Traffic::of(one.bytes_acknowledged, one.bytes_received),
        retransmits: one.retransmits,
    });
    Ok(Carried {
        sent: info.bytes_acknowledged,
        received: info.bytes_received,
        reinjected: info.bytes_retransmitted,
        subflows: subflows.collect(),
    })
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
