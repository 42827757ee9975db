//! Requests to the emulator of an AS, over its Unix socket.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc::{RpcError, Service};
use hawser_topology::LinkState;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sets the state of the link at an interface.
    SetLink { id: u16, state: LinkState },
    /// Forgets the link at an interface, whose devices are about to be removed.
    RemoveLink { id: u16 },
    /// Requests the counters of all links.
    Counters,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Counters(BTreeMap<u16, PlainIp>),
    Done,
    Error { message: String },
}

/// Packets of plain IP that one end of a link sends, of a link with delay, jitter or loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlainIp {
    /// Packets sent; packets of segmentation offload count one by one.
    pub packets: u64,
    /// Their bytes, as Ethernet frames.
    pub bytes: u64,
    /// Packets lost as the link's loss says.
    pub lost: u64,
    /// Packets dropped because more were in flight than the link carries, or because the limit's
    /// queue was full, or the link was down.
    pub dropped: u64,
}

/// Sends `request` to the emulator at `socket`, and waits for its reply.
pub(crate) fn call(socket: &Path, request: &Request) -> Result<Reply, RpcError> {
    const EMULATOR: Service = Service {
        name: "emulator",
        // It answers at once.
        timeout: Duration::from_secs(5),
    };
    EMULATOR.call(socket, request)
}
