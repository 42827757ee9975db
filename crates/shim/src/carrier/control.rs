//! The control stream of a lane's connection, and the watch over the lane.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use hawser_quic::{Connection, RecvStream, SendStream, StreamError};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

use super::lane::{LaneEvent, LaneKey, SealedLane};
use crate::liveness::Judgement;
use crate::protocol::{DecodeError, Framing, Message};

/// Bytes read from the stream at once.
const CHUNK: usize = 64 << 10;
/// Interval at which lanes are judged.
const TICK: Duration = Duration::from_millis(20);
/// Time between probes of a path over which nothing has arrived yet.
const PROBED: Duration = Duration::from_millis(100);
/// Probes of the size that the path announces, after which small ones are tried.
const LARGE: u32 = 3;

/// Why a control stream ended.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the other side closed the connection")]
    Closed,
    #[error("the other side breaks the protocol: {0}")]
    Decode(#[from] DecodeError),
}

/// The control stream of a connection.
pub(crate) struct Control {
    pub connection: Connection,
    send: SendStream,
    receive: RecvStream,
    framing: Framing,
}

impl Control {
    /// Opens the stream, as the side that dialed.
    pub(crate) async fn open(connection: Connection) -> Result<Self, ControlError> {
        let streams = connection.open_bi().await?;
        Ok(Self::new(connection, streams))
    }

    /// Waits for the stream of the side that dialed.
    pub(crate) async fn accept(connection: Connection) -> Result<Self, ControlError> {
        let streams = connection.accept_bi().await?;
        Ok(Self::new(connection, streams))
    }

    fn new(connection: Connection, (send, receive): (SendStream, RecvStream)) -> Self {
        Self {
            connection,
            send,
            receive,
            framing: Framing::default(),
        }
    }

    /// The next message.
    pub(crate) async fn read(&mut self) -> Result<Message, ControlError> {
        loop {
            if let Some(message) = self.framing.pop()? {
                return Ok(message);
            }
            let chunk = self.receive.read_chunk(CHUNK).await?;
            self.framing.push(&chunk.ok_or(ControlError::Closed)?);
        }
    }

    /// The next message, if it has arrived; `None` also at the end.
    async fn read_arrived(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            message = self.read() => message.ok(),
            () = std::future::ready(()) => None,
        }
    }

    pub(crate) async fn write(&mut self, message: &Message) -> Result<(), ControlError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        Ok(self.send.write_all(&bytes).await?)
    }

    /// Sends no more, and waits until the peer has received all.
    pub(crate) async fn finish(mut self) {
        if self.send.finish().is_ok() {
            let _ = self.send.delivered().await;
        }
    }

    /// Works the connection of `lane`, and judges the lane, until one of them ends. Messages that
    /// arrive go to `received`; those from `outgoing` are sent.
    pub(crate) async fn run(
        mut self,
        lane: Arc<SealedLane>,
        mut outgoing: UnboundedReceiver<Message>,
        received: UnboundedSender<(LaneKey, Message)>,
    ) {
        // Both sides know each other by now.
        self.connection.expect_data();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = Watch::new(Arc::clone(&lane));
        let failed = loop {
            tokio::select! {
                message = self.read() => match message {
                    Ok(message) => {
                        if received.send((watch.lane.key, message)).is_err() {
                            return;
                        }
                    }
                    Err(error) => break error.to_string(),
                },
                Some(message) = outgoing.recv() => {
                    if let Err(error) = self.write(&message).await {
                        // What the other side sent before it left tells why.
                        while let Some(message) = self.read_arrived().await {
                            let _ = received.send((watch.lane.key, message));
                        }
                        break error.to_string();
                    }
                    if matches!(message, Message::Packet { .. }) {
                        watch.lane.on_packet_sent();
                    }
                }
                () = lane.closed() => return,
                _ = tick.tick() => {
                    watch.lane.set_rtt(self.connection.stats().rtt);
                    if watch.is_dead() && !watch.is_alone() {
                        break "nothing comes back over it".to_owned();
                    }
                }
            }
        };
        watch.lane.report(LaneEvent::Failed(failed));
    }
}

/// Probes a lane, and judges it.
struct Watch {
    lane: Arc<SealedLane>,
    /// Probes sent before the lane was up, and when the last of them was.
    probes: u32,
    probed: Option<tokio::time::Instant>,
    /// Whether it was reported as stalled.
    stalled: bool,
}

impl Watch {
    fn new(lane: Arc<SealedLane>) -> Self {
        Self {
            lane,
            probes: 0,
            probed: None,
            stalled: false,
        }
    }

    /// Whether no other lane of the session works: then it is not ended for its silence, which the
    /// connection does later, but another is dialed beside it.
    fn is_alone(&mut self) -> bool {
        let is_alone = !self.lane.table.has_other(self.lane.key);
        if is_alone && !std::mem::replace(&mut self.stalled, true) {
            self.lane.report(LaneEvent::Stalled);
        }
        is_alone
    }

    fn is_dead(&mut self) -> bool {
        let lane = &self.lane;
        let bound = lane.table.bound_of(lane.key);
        if !lane.is_up() {
            let due = self.probed.is_none_or(|at| at.elapsed() >= PROBED);
            // The side that accepts does not know the path before something arrives over it.
            if let (true, Some(bound), Some(_)) = (due, bound, lane.lane()) {
                self.probed = Some(tokio::time::Instant::now());
                self.probes += 1;
                if self.probes > LARGE {
                    // The path may take less than its ASes announce.
                    lane.set_datagram(0);
                }
                lane.probe(bound, lane.datagram(), true);
            }
            return false;
        }
        match (lane.judge(), bound) {
            (Judgement::Dead, bound) => {
                // If the lane is alone, it may still come to life.
                if let Some(bound) = bound {
                    lane.probe(bound, 0, true);
                }
                return true;
            }
            (Judgement::Probe, Some(bound)) => lane.probe(bound, 0, true),
            (Judgement::Alive, _) if self.stalled && !lane.liveness.is_waiting() => {
                self.stalled = false;
                lane.report(LaneEvent::Recovered);
            }
            _ => {}
        }
        false
    }
}
