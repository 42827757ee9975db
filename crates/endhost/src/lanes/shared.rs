//! What all lanes, senders and the receiver of one socket share.

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

/// Something that goes wrong with packets of a flow.
#[derive(Debug)]
pub(super) enum Fault {
    /// A router or host reported that a packet did not get through.
    Report { flow: Arc<Flow>, error: ScmpError },
    /// The system does not take packets; its error.
    Send { flow: FlowId, message: String },
}
