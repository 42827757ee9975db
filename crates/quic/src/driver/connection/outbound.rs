//! Packets of a connection on their way to the socket.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::lanes::{Flow, FlowId, LaneSender};

use super::schedule::Schedule;
use crate::driver::Driver;

/// The packets that the protocol made last, and where they go.
pub(super) struct Outbound {
    sender: LaneSender,
    /// `None` once it is forgotten, because no lane uses it.
    flow: Option<Arc<Flow>>,
    packets: Vec<u8>,
    pending: Option<Pending>,
}

/// Packets that the socket has not taken.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: usize,
    segment: usize,
    ecn: u8,
}

impl Outbound {
    pub(super) fn new(driver: &Driver, flow: FlowId) -> Self {
        Self {
            sender: driver.lanes.sender(),
            flow: driver.lanes.flow(flow),
            packets: Vec::new(),
            pending: None,
        }
    }

    /// The flow of its packets, unless it is forgotten.
    pub(super) fn flow(&self) -> Option<FlowId> {
        self.flow.as_ref().map(|flow| flow.id)
    }

    /// Sends what the protocol has to send, and notes the time in `schedule`. Fails when the socket has no
    /// room; what it has not taken waits for the next call.
    pub(super) fn send(
        &mut self,
        quic: &mut noq_proto::Connection,
        schedule: &mut Schedule,
        now: Instant,
    ) -> io::Result<()> {
        loop {
            self.send_pending()?;
            self.packets.clear();
            // What one call of the kernel takes: a rest would be a small batch for every router.
            let batch = self.flow.as_ref().map_or(NonZeroUsize::MIN, |flow| {
                let mtu = quic.current_mtu();
                self.sender.max_segments(flow, mtu.into())
            });
            let Some(transmit) = quic.poll_transmit(now, batch, &mut self.packets) else {
                return Ok(());
            };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            schedule.on_sent(transmit.size.div_ceil(segment.max(1)), now);
            self.pending = Some(Pending {
                at: 0,
                segment,
                ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            });
        }
    }

    fn send_pending(&mut self) -> io::Result<()> {
        // Without a flow no lane uses it: the packets go nowhere.
        if let (Some(pending), Some(flow)) = (&mut self.pending, &self.flow) {
            while pending.at < self.packets.len() {
                let rest = &self.packets[pending.at..];
                match (self.sender).try_send(flow, rest, pending.segment, pending.ecn) {
                    Ok(sent) => pending.at += sent,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                    // What the system does not take is lost, as packets are. Connections over
                    // the flow end with the reason.
                    Err(_) => break,
                }
            }
        }
        self.pending = None;
        Ok(())
    }
}
