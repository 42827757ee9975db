//! What a lane does when the path under it is in doubt.

use std::sync::Weak;
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{Doubt, Evidence, LaneEnd, LaneUser, Probing};

use super::{LaneEvent, SealedLane};

/// Longest wait for an answer when a router reports the path down: the answer takes a round trip.
const DOUBT_TIMEOUT: Duration = Duration::from_millis(40);

/// The user of a path: the lane over it.
pub(super) struct Watched(pub(super) Weak<SealedLane>);

impl LaneUser for Watched {
    fn probe<'a>(&'a self, doubt: &'a Doubt) -> Probing<'a> {
        Box::pin(async move {
            let Some(lane) = self.0.upgrade() else {
                return Evidence::Unknown;
            };
            if let Some(most) = doubt.max_payload {
                lane.set_datagram(most.min(lane.datagram()));
                return Evidence::Unknown;
            }
            let Some(bound) = lane.table.bound_of(lane.key) else {
                return Evidence::Unknown;
            };
            let (since, at) = (lane.now(), Instant::now());
            let wait = DOUBT_TIMEOUT + lane.rtt().unwrap_or_default() * 5 / 4;
            for _ in 0..2 {
                lane.probe(bound, 0, true);
                tokio::time::sleep(wait / 2).await;
            }
            match lane.liveness.has_received_after(since) {
                true => Evidence::Alive(at),
                false => Evidence::Dead,
            }
        })
    }

    fn on_end(&self, end: &LaneEnd) {
        if let Some(lane) = self.0.upgrade() {
            lane.report(LaneEvent::Failed(end.to_string()));
        }
    }
}
