//! The end of a session.

use std::time::Duration;

use hawser_endhost::patience::wait;

use super::ClientDriver;
use crate::link::ToHolder;
use crate::plane::lane::LaneKey;
use crate::protocol::{Message, Role, Status};
use crate::session::Ending;

/// Longest wait until the other side has noticed the end, without the time in which this process did not
/// run: more than a round trip on Earth. Over a path that has just failed nothing comes back.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest wait until streams are delivered that programs have ended.
const DELIVERY_TIMEOUT: Duration = Duration::from_millis(300);
/// Interval at which that is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a session may take to end while this process runs: less than the holder waits for its carrier.
pub(in crate::carrier) const GOODBYE: Duration = DELIVERY_TIMEOUT.saturating_add(CLOSE_TIMEOUT);

impl ClientDriver {
    /// Ends the session on both sides, for this `reason`.
    pub(super) async fn end(mut self, ending: Ending, reason: String) {
        self.dials.cancel_all();
        match ending {
            Ending::InOrder => self.deliver().await,
            Ending::Revoked => self.streaming.instance.streams.end(Status::Untrusted),
            Ending::Failed => {}
        }
        self.streaming.instance.end();
        if let Some(table) = &self.table {
            // Packets that are sent from now on ask for another session.
            self.node.plane().remove_session(table);
        }
        self.take_leave().await;
        let lanes: Vec<LaneKey> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.close(lane);
        }
        if let Some(table) = self.table.take() {
            self.node.tell(ToHolder::Ended {
                peer: table.peer.address(0),
                role: Role::Client,
                reason,
                at_once: false,
            });
        }
    }

    /// Waits until streams are delivered that programs have ended.
    async fn deliver(&self) {
        let delivered = async {
            let streams = &self.streaming.instance.streams;
            while !self.lanes.is_empty() && streams.are_undelivered() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        // What takes longer ends as open connections do.
        let _ = wait(DELIVERY_TIMEOUT, delivered).await;
    }

    /// Informs the other side over every lane, as any path may be dead, and waits until it has closed
    /// them. Without that it would keep its connections until it notices that nobody comes back.
    async fn take_leave(&self) {
        let closed = async {
            for one in self.lanes.values() {
                one.lane.close_with(Message::Bye);
            }
            for one in self.lanes.values() {
                one.connection.closed().await;
            }
        };
        // Later the lanes still try, as long as this process runs.
        let _ = wait(CLOSE_TIMEOUT, closed).await;
    }
}
