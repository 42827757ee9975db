//! Receiving over lanes.

use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::{fmt, io};

use super::flow::{Candidate, FlowId};
use super::shared::{Fault, Shared};
use super::table::{Seen, Table};
use crate::socket::{Arrival, Datagram, Packets, ReceiveBuffer, Report, Socket};

/// Receives packets at a socket, and finds the flow of each.
pub struct LaneReceiver {
    shared: Arc<Shared>,
    buffer: ReceiveBuffer,
    /// The flow key of the previous packet.
    key: Vec<u8>,
}

/// A datagram from a remote.
#[derive(Debug, Clone)]
pub struct LaneDatagram<'a> {
    /// The flow of the datagram.
    pub flow: FlowId,
    /// The datagram's path, where answers of the flow may take it instead of theirs; mostly `None`.
    pub candidate: Option<Arc<Candidate>>,
    /// The congestion mark (two bits).
    pub ecn: u8,
    /// The payload.
    pub payload: &'a [u8],
}

/// The datagrams of one receive, in order.
///
/// A new remote or path creates a new flow. SCMP errors are taken out: those that count cast doubt
/// on lanes, all others are counted and dropped.
pub struct Batch<'a> {
    packets: Packets<'a>,
    key: &'a mut Vec<u8>,
    /// What is known of packets with that key; `None` until it is looked up.
    last: Option<Seen>,
    table: MutexGuard<'a, Table>,
    shared: &'a Shared,
}

impl LaneReceiver {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            buffer: ReceiveBuffer::default(),
            key: Vec::new(),
        }
    }

    /// Waits for packets. All packets of the [batch](LaneReceiver::batch) before must have been
    /// taken.
    ///
    /// # Errors
    /// The system's error.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.socket.poll_receive(cx, &mut self.buffer)
    }

    /// Receives what is there, without waiting. All there was must have been taken from
    /// [`LaneReceiver::batch`] before.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; everything else as the system says.
    pub fn try_receive(&mut self) -> io::Result<()> {
        self.shared.socket.try_receive(&mut self.buffer)
    }

    /// The datagrams received and not yet taken. No lane can be opened while this exists; lanes may end.
    pub fn batch(&mut self) -> Batch<'_> {
        let Self {
            shared,
            buffer,
            key,
        } = self;
        Batch {
            packets: shared.socket.packets(buffer),
            key,
            last: None,
            table: shared.flows.lock(),
            shared,
        }
    }
}

impl Batch<'_> {
    /// The flow of `datagram`; `None` when nothing can be sent back.
    #[inline]
    fn look_up(&mut self, datagram: &Datagram<'_>) -> Option<&Seen> {
        // Packets of one flow mostly arrive in a row: then no look-up is needed.
        let last = self.last.as_ref();
        let again = last.is_some_and(|last| last.holds_for(datagram.from));
        if !again || !has_key(datagram, self.key) {
            write_key(datagram, self.key);
            self.last = match self.table.by_key(self.key, datagram.from) {
                Some(seen) => Some(seen),
                None => learn(&mut self.table, &self.shared.socket, datagram, self.key),
            };
        }
        self.last.as_ref()
    }

    #[cold]
    fn report(&self, report: &Report<'_>) {
        let Shared {
            socket,
            tokens,
            format,
            faults,
            ..
        } = self.shared;
        match tokens.flow_of(report, format, socket.local_addr().isd_as) {
            Some(flow) => {
                let error = report.error;
                // If the queue is full, the next packet causes the fault again.
                let _ = faults.try_send(Fault::Report { flow, error });
            }
            None => socket.reject(report),
        }
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = LaneDatagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<LaneDatagram<'a>> {
        loop {
            match self.packets.next()? {
                Arrival::Datagram(datagram) => {
                    if let Some(seen) = self.look_up(&datagram) {
                        return Some(LaneDatagram {
                            flow: seen.flow,
                            candidate: seen.candidate.clone(),
                            ecn: datagram.ecn(),
                            payload: datagram.payload,
                        });
                    }
                }
                Arrival::Report(report) => self.report(&report),
                Arrival::Scmp(..) => {}
            }
        }
    }
}

/// Whether `key` is that of `datagram`.
#[inline]
fn has_key(datagram: &Datagram<'_>, key: &[u8]) -> bool {
    key.split_first_chunk().is_some_and(|(port, rest)| {
        *port == datagram.port.to_be_bytes() && rest == datagram.flow_bytes()
    })
}

/// Writes the flow key: the bytes that all packets of `datagram`'s flow have in common, until the
/// remote refreshes its path.
#[inline]
fn write_key(datagram: &Datagram<'_>, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&datagram.port.to_be_bytes());
    key.extend_from_slice(datagram.flow_bytes());
}

/// Determines the flow of a packet with a new key, and how to answer; `None` when no answer can be
/// sent.
#[cold]
fn learn(table: &mut Table, socket: &Socket, datagram: &Datagram<'_>, key: &[u8]) -> Option<Seen> {
    let back = datagram
        .reply_path(socket.host(), socket.local_addr())
        .ok()?;
    let flow = table.flow(back.headers.clone(), &back.interfaces, back.expiry);
    let flow = flow.id;
    Some(table.consider(flow, key, back.headers, back.expiry))
}

impl fmt::Debug for LaneReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.socket.fmt(f)
    }
}
