//! The connection of a lane at work, and the watch over the lane.

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::patience::Lateness;
use hawser_quic::Connection;
use hawser_session::MessageQueue;
use tokio::sync::mpsc::Sender;
use tokio::time::MissedTickBehavior;

use crate::liveness::Judgement;
use crate::plane::lane::{LaneEvent, LaneKey, SealedLane};
use crate::protocol::Message;

/// Interval at which lanes are judged.
const TICK: Duration = Duration::from_millis(20);
/// Time between probes of a path over which nothing has arrived yet.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Probes of the size that the path announces, after which small ones are tried.
const MAX_LARGE_PROBES: u32 = 3;

/// The control stream of a lane's connection.
pub(crate) type Control = hawser_session::Control<Message>;

/// Works the connection of `lane`, and judges the lane, until one of them ends. Messages that arrive go to
/// `received`; those from `outgoing`, which are the lane's, are sent.
///
/// The lane is judged also while the other side reads nothing.
pub(crate) async fn run(
    control: Control,
    lane: Arc<SealedLane>,
    outgoing: MessageQueue<Message>,
    received: Sender<(LaneKey, Message)>,
) {
    let (key, connection) = (lane.key, control.connection().clone());
    let mut carrying = pin!(control.run(outgoing, received, |message| (key, message)));
    let failed = tokio::select! {
        ended = &mut carrying => ended.err().map(|error| error.to_string()),
        () = judge(&lane, &connection) => Some("nothing comes back over it".to_owned()),
        () = lane.closed() => {
            if lane.has_last_message() {
                // Until the other side has it, or had time to; a failure shows there as well.
                let _ = carrying.await;
            }
            None
        }
    };
    if let Some(error) = failed {
        lane.report(LaneEvent::Failed(error));
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
            let due = self.probed.is_none_or(|at| at.elapsed() >= PROBE_INTERVAL);
            // The side that accepts does not know the path before something arrives over it.
            if let (true, Some(bound), Some(_)) = (due, bound, lane.lane()) {
                self.probed = Some(tokio::time::Instant::now());
                self.probes += 1;
                if self.probes > MAX_LARGE_PROBES {
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
