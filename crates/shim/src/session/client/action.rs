//! What a session wants done.

use std::net::SocketAddr;

use hawser_manager::SubflowId;
use hawser_path::{Fingerprint, Interface};

use super::error::Ending;
use crate::address::{Block, Slot};
use crate::protocol::{Epoch, Message};
use crate::session::lane_key::LaneKey;

/// A request for where connections go, as its driver numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RequestId(pub u64);

/// Where a connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connect {
    /// To the peer with these addresses, by MPTCP.
    Mptcp(Block),
    /// To a stream to it.
    Quic(Block),
}

impl Connect {
    /// The peer.
    pub(crate) fn peer(self) -> Block {
        match self {
            Self::Mptcp(peer) | Self::Quic(peer) => peer,
        }
    }
}

/// What a session wants done, at once and in this order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action<P> {
    /// Dial over a path, and report what comes of it.
    DialPath { subflow: SubflowId, path: P },
    /// Dial over plain IP, and report what comes of it.
    DialPlainIp(SocketAddr),
    /// Nothing of this dial is wanted any more.
    CancelDial(SubflowId),
    /// A connected lane takes part, under this slot: open it at the other host.
    Open {
        lane: LaneKey,
        slot: Slot,
        epoch: Epoch,
    },
    /// The other host has accepted a lane, and takes its datagrams at this port: open its path.
    OpenPath { lane: LaneKey, port: u16 },
    /// Put a lane under another slot.
    Bind {
        lane: LaneKey,
        slot: Slot,
        epoch: Epoch,
    },
    /// Send a message over the connection of a lane.
    Send { lane: LaneKey, message: Message },
    /// Send probes over a lane.
    Probe { lane: LaneKey, count: usize },
    /// Record that a lane that worked fails, for this reason.
    Failover {
        lane: LaneKey,
        slot: Slot,
        reason: String,
    },
    /// Close a lane, which has no part in the session any more, or never had.
    Close(LaneKey),
    /// Tell the holder that MPTCP may use these slots from now on, the best one first.
    Publish(Vec<Slot>),
    /// Answer a request.
    Answer {
        request: RequestId,
        found: Result<Connect, String>,
    },
    /// Warn that two paths share interfaces.
    WarnOfShared {
        paths: [Fingerprint; 2],
        interfaces: Vec<Interface>,
    },
    /// The session is over: cancel all dials, take leave as `ending` says, and close the lanes.
    End { ending: Ending, reason: String },
}
