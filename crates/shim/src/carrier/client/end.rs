//! The end of a session.

use std::time::Duration;

use tokio::sync::mpsc;

use super::dial::SessionError;
use super::{ClientSession, Request};
use crate::carrier::lane::LaneKey;
use crate::link::{Role, ToHolder};
use crate::protocol::{Message, RefusalCode, Status};

/// Longest wait until the other side has noticed the end: more than a round trip on Earth. Over a path
/// that has just failed nothing comes back.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest wait until streams are delivered that programs have ended.
const DELIVERED: Duration = Duration::from_millis(300);
/// Interval at which that is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a session may take to end: less than the holder waits for its carrier.
pub(in crate::carrier) const GOODBYE: Duration = DELIVERED.saturating_add(CLOSE_TIMEOUT);

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nobody wants it any more: what is under way is delivered, and the other side learns of the end.
    InOrder,
    /// One side no longer trusts the other: nothing is delivered.
    Revoked,
    /// It has failed.
    Failed,
}

impl Ending {
    /// That of a session whose work has ended like this.
    pub(super) fn of(ended: &Result<(), SessionError>) -> Self {
        match ended {
            Ok(()) => Self::InOrder,
            Err(SessionError::Distrusted { .. }) => Self::Revoked,
            Err(SessionError::Refused { code, .. }) if *code == RefusalCode::KEY => Self::Revoked,
            Err(_) => Self::Failed,
        }
    }
}

impl ClientSession {
    /// Refuses the requests that have no answer. Later ones begin another session.
    pub(super) fn refuse(&mut self, mut requests: mpsc::UnboundedReceiver<Request>, reason: &str) {
        for waiting in self.waiting.drain(..) {
            waiting.give(Err(reason.to_owned()));
        }
        requests.close();
        while let Ok(request) = requests.try_recv() {
            match request {
                Request::Connect(answer) => answer.give(Err(reason.to_owned())),
                Request::Carry(handed, _) => handed.refuse(),
                Request::InUse(_) | Request::Report(_) | Request::Policy(_) => {}
            }
        }
    }

    /// Ends the session on both sides, for this `reason`.
    pub(super) async fn end(mut self, ending: Ending, reason: String) {
        self.dialer.cancel();
        match ending {
            Ending::InOrder => self.deliver().await,
            Ending::Revoked => self.streams.streams.end(Status::Untrusted),
            Ending::Failed => {}
        }
        self.streams.end();
        if let Some((_, table)) = &self.known {
            // Packets that are sent from now on ask for another session.
            self.node.plane().remove_session(table);
        }
        if ending != Ending::Failed {
            self.take_leave().await;
        }
        let lanes: Vec<LaneKey> = self.open.keys().copied().collect();
        for lane in lanes {
            self.remove(lane);
        }
        if let Some((_, table)) = self.known.take() {
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
            while !self.open.is_empty() && self.streams.streams.are_undelivered() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        // What takes longer ends as open connections do.
        let _ = tokio::time::timeout(DELIVERED, delivered).await;
    }

    /// Informs the other side over every lane, as any path may be dead, and waits until it has closed
    /// them.
    async fn take_leave(&self) {
        let closed = async {
            for one in self.open.values() {
                one.lane.send(Message::Bye);
            }
            for one in self.open.values() {
                one.connection.closed().await;
            }
        };
        // Otherwise it notices later that nobody comes back.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
    }
}
