//! The control stream of a lane's connection, and the watch over the lane.

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::patience::Lateness;
use hawser_quic::{Connection, RecvStream, SendStream, StreamError};
use thiserror::Error;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
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

/// Longest wait until the other side has received why a lane was closed.
const FAREWELL: Duration = Duration::from_secs(2);

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
        let mut reader = Reader {
            receive: &mut self.receive,
            framing: &mut self.framing,
        };
        reader.read().await
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
    ///
    /// A write waits for as long as the other side does not read: meanwhile messages are read, and the
    /// lane is judged.
    pub(crate) async fn run(
        mut self,
        lane: Arc<SealedLane>,
        outgoing: UnboundedReceiver<Message>,
        received: Sender<(LaneKey, Message)>,
    ) {
        let connection = self.connection.clone();
        // Both sides know each other by now.
        connection.expect_data();
        let mut reader = Reader {
            receive: &mut self.receive,
            framing: &mut self.framing,
        };
        let ended = {
            let mut write = pin!(write_all(&mut self.send, &lane, outgoing));
            let judge = pin!(judge(&lane, &connection));
            tokio::select! {
                result = reader.pass_all(&lane, &received) => match result {
                    Ok(()) => return,
                    Err(error) => Some(error.to_string()),
                },
                result = &mut write => match result {
                    Ok(()) => None,
                    Err(error) => {
                        // What the other side sent before it left tells why.
                        while let Some(message) = reader.read_arrived().await {
                            // The session may have ended.
                            let _ = received.send((lane.key, message)).await;
                        }
                        Some(error.to_string())
                    }
                },
                () = judge => Some("nothing comes back over it".to_owned()),
                () = lane.closed() => {
                    if lane.last_message().is_some() {
                        // A peer that takes nothing does not learn it.
                        let _ = tokio::time::timeout(FAREWELL, write).await;
                    }
                    None
                }
            }
        };
        match ended {
            Some(error) => lane.report(LaneEvent::Failed(error)),
            None if lane.last_message().is_some() => {
                let _ = tokio::time::timeout(FAREWELL, self.finish()).await;
            }
            None => {}
        }
    }
}

/// The direction of a control stream from the other side.
struct Reader<'a> {
    receive: &'a mut RecvStream,
    framing: &'a mut Framing,
}

impl Reader<'_> {
    /// The next message.
    async fn read(&mut self) -> Result<Message, ControlError> {
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

    /// Passes all messages on to `received`, until its receiver is gone. While it has no room, nothing
    /// is read, so that QUIC stops the other side.
    async fn pass_all(
        &mut self,
        lane: &SealedLane,
        received: &Sender<(LaneKey, Message)>,
    ) -> Result<(), ControlError> {
        loop {
            let message = self.read().await?;
            if received.send((lane.key, message)).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// Sends all messages from `outgoing`, until that fails, or the lane is closed and its last message was
/// sent.
async fn write_all(
    send: &mut SendStream,
    lane: &SealedLane,
    mut outgoing: UnboundedReceiver<Message>,
) -> Result<(), StreamError> {
    let mut bytes = Vec::new();
    loop {
        let (message, is_last) = tokio::select! {
            Some(message) = outgoing.recv() => (message, false),
            () = lane.closed() => match lane.last_message() {
                Some(last) => (last, true),
                None => return Ok(()),
            },
        };
        bytes.clear();
        message.encode(&mut bytes);
        send.write_all(&bytes).await?;
        if is_last {
            return Ok(());
        }
        lane.on_sent(&message);
    }
}

/// Probes and judges a lane, until it is dead though another one works.
async fn judge(lane: &Arc<SealedLane>, connection: &Connection) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::new(Arc::clone(lane));
    let mut lateness = Lateness::new(TICK, Instant::now());
    loop {
        tick.tick().await;
        let pause = lateness.look(Instant::now());
        if !pause.is_zero() {
            // Answers may have arrived that are not read yet.
            lane.liveness.excuse(pause, lane.now());
        }
        lane.set_rtt(connection.stats().rtt);
        if watch.is_dead() && !watch.is_alone() {
            return;
        }
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
