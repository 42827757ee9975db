//! State that all lanes, senders and the receiver of one socket share.

use std::sync::Arc;

use hawser_packet::ScmpError;
use tokio::sync::mpsc;

use super::flow::{Flow, FlowId};
use super::table::Flows;
use super::tokens::{PacketFormat, Tokens};
use crate::socket::Socket;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) socket: Socket,
    pub(super) flows: Arc<Flows>,
    pub(super) tokens: Tokens,
    pub(super) format: PacketFormat,
    pub(super) faults: mpsc::Sender<Fault>,
}

/// A fault of packets of a flow.
#[derive(Debug)]
pub(super) enum Fault {
    /// A router or host reported that a packet did not get through.
    Report { flow: Arc<Flow>, error: ScmpError },
    /// The system refuses packets with this error.
    Send { flow: FlowId, message: String },
}
