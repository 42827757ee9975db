//! What a lane reports to its session.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::UnboundedSender;

use super::{LaneEvent, LaneKey};

/// Reports of a lane to its session. Datagrams of the other side may cause them as fast as they arrive:
/// of each kind one at most is on its way.
pub(super) struct Reports {
    key: LaneKey,
    events: UnboundedSender<(LaneKey, LaneEvent)>,
    /// Whether that it is bound, and that it has failed, is on its way.
    bound: AtomicBool,
    failed: AtomicBool,
}

impl Reports {
    pub(super) fn new(key: LaneKey, events: UnboundedSender<(LaneKey, LaneEvent)>) -> Self {
        Self {
            key,
            events,
            bound: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        }
    }

    /// Reports to the session, unless it has ended, or has not taken such a report yet.
    pub(super) fn send(&self, event: LaneEvent) {
        let pending = match &event {
            LaneEvent::Bound => Some(&self.bound),
            // It is handled once.
            LaneEvent::Failed(_) => Some(&self.failed),
            _ => None,
        };
        if !pending.is_some_and(|pending| pending.swap(true, Ordering::AcqRel)) {
            let _ = self.events.send((self.key, event));
        }
    }

    /// The session has taken a report that the lane is bound.
    pub(super) fn on_bound_handled(&self) {
        self.bound.store(false, Ordering::Release);
    }
}
