//! Live data: sampled once a second, written once for all readers.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use hawser_coordinator::Direction;
use hawser_http::Topic;
use serde::Serialize;
use utoipa::ToSchema;

use crate::sampler::{Sampler, Use};

/// The last sample.
#[derive(Debug)]
pub(crate) struct Live {
    sampler: Mutex<Sampler>,
    /// What streams send.
    topic: Topic,
    current: Mutex<Arc<Current>>,
}

/// The use of links now, and as it is answered.
#[derive(Debug, Default)]
pub(crate) struct Current {
    pub used: Vec<Use>,
    pub body: Bytes,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            sampler: Mutex::default(),
            topic: Topic::default(),
            current: Mutex::new(Arc::new(Current {
                used: Vec::new(),
                body: Bytes::from_static(b"{\"at\":0,\"links\":[]}\n"),
            })),
        }
    }
}

/// What all links carry.
#[derive(Serialize, ToSchema)]
pub(crate) struct LiveUsage {
    /// When this was sampled, in milliseconds since 1970.
    at: u64,
    links: Vec<LinkUse>,
}

/// What a link carries in one direction.
#[derive(Serialize, ToSchema)]
#[schema(as = Use)]
struct LinkUse {
    link: u64,
    direction: Direction,
    bytes: u64,
    packets: u64,
    drops: u64,
    backlog: u64,
    /// bit/s.
    #[schema(required)]
    rate: Option<u64>,
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no rate is negative"
)]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

impl Live {
    pub fn sampler(&self) -> MutexGuard<'_, Sampler> {
        self.sampler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn publish(&self, at: u64, revision: u64, used: Vec<Use>) {
        self.topic.publish(&event(at, revision, &used));
        let links = used.iter().map(|one| LinkUse {
            link: one.link.0,
            direction: one.direction,
            bytes: one.counters.bytes,
            packets: one.counters.packets,
            drops: one.counters.drops,
            backlog: one.counters.backlog,
            rate: one.rate.map(whole),
        });
        let links = links.collect();
        // Numbers and words: writing them cannot fail.
        let body = serde_json::to_string(&LiveUsage { at, links }).unwrap_or_default() + "\n";
        let current = Current {
            used,
            body: body.into(),
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }
}

/// The data of a sample's event: `[link, egress, ingress]` in bit/s for each link that carries something.
fn event(at: u64, revision: u64, used: &[Use]) -> String {
    let mut text = format!("{{\"at\":{at},\"revision\":{revision},\"rates\":[");
    let mut first = true;
    // Both directions of a link are side by side.
    for both in used.chunk_by(|one, other| one.link == other.link) {
        let of = |direction| {
            let one = both.iter().find(|one| one.direction == direction);
            one.and_then(|one| one.rate).map_or(0, whole)
        };
        let rates = Direction::ALL.map(of);
        if rates != [0, 0] {
            let comma = if first { "" } else { "," };
            first = false;
            let [egress, ingress] = rates;
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}[{},{egress},{ingress}]", both[0].link);
        }
    }
    text + "]}"
}

#[cfg(test)]
mod tests {
    use hawser_coordinator::{LinkCounters, LinkId};

    use super::*;

    #[test]
    fn an_event_has_the_links_that_carry_something() {
        let of = |link, direction, rate| Use {
            link: LinkId(link),
            direction,
            counters: LinkCounters::default(),
            rate,
        };
        let used = [
            of(1, Direction::Egress, Some(0.0)),
            of(2, Direction::Egress, Some(1000.4)),
            of(2, Direction::Ingress, None),
            of(3, Direction::Ingress, Some(7.0)),
        ];
        let expected = "{\"at\":5,\"revision\":6,\"rates\":[[2,1000,0],[3,0,7]]}";
        assert_eq!(event(5, 6, &used), expected);
    }
}
