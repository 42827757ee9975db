//! Live data: sampled once a second, written once for all readers.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hawser_coordinator::Direction;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::sampler::{Sampler, Use};

/// How long one stream of events lasts: browsers begin another one, and show again who they are.
const STREAM: Duration = Duration::from_secs(300);

/// The last sample.
#[derive(Debug)]
pub(crate) struct Live {
    sampler: Mutex<Sampler>,
    /// The event that streams send.
    event: watch::Sender<Bytes>,
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
            event: watch::Sender::new(Bytes::new()),
            current: Mutex::new(Arc::new(Current {
                used: Vec::new(),
                body: Bytes::from_static(b"{\"at\":0,\"links\":[]}\n"),
            })),
        }
    }
}

#[derive(Serialize)]
struct LinkUse {
    link: u64,
    direction: Direction,
    bytes: u64,
    packets: u64,
    drops: u64,
    backlog: u64,
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

    pub fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A stream of events: each sample as it is made, as long as its reader `may_read`. That is looked
    /// at before each sample, and when the state of the coordinator changes, as `changes` report it.
    pub fn stream(
        &self,
        changes: watch::Receiver<u64>,
        may_read: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Response {
        let end = Instant::now() + STREAM;
        // The last event is sent at once: a page need not wait for its first data.
        let mut events = self.event.subscribe();
        events.mark_changed();
        let next =
            move |(mut events, mut changes): (watch::Receiver<Bytes>, watch::Receiver<u64>)| {
                let may_read = may_read.clone();
                async move {
                    loop {
                        let is_event = tokio::select! {
                            event = timeout_at(end, events.changed()) => {
                                event.ok()?.ok()?;
                                true
                            }
                            change = changes.changed() => {
                                change.ok()?;
                                false
                            }
                        };
                        if !may_read() {
                            return None;
                        }
                        if is_event {
                            let event = events.borrow_and_update().clone();
                            return Some((Ok::<_, Infallible>(event), (events, changes)));
                        }
                    }
                }
            };
        let head = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store"),
            // Proxies of the nginx family pass events on only then.
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (
            head,
            Body::from_stream(stream::unfold((events, changes), next)),
        )
            .into_response()
    }

    pub(crate) fn publish(&self, at: u64, revision: u64, used: Vec<Use>) {
        let event = event(at, revision, &used);
        let links = used.iter().map(|one| LinkUse {
            link: one.link.0,
            direction: one.direction,
            bytes: one.counters.bytes,
            packets: one.counters.packets,
            drops: one.counters.drops,
            backlog: one.counters.backlog,
            rate: one.rate.map(whole),
        });
        let links: Vec<_> = links.collect();
        let body = json!({ "at": at, "links": links }).to_string() + "\n";
        let current = Current {
            used,
            body: body.into(),
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
        self.event.send_replace(event.into());
    }
}

/// The event of a sample: `[link, egress, ingress]` in bit/s for each link that carries something.
fn event(at: u64, revision: u64, used: &[Use]) -> String {
    // Browsers begin a stream that ended anew after half a second.
    let mut text = format!("retry: 500\ndata: {{\"at\":{at},\"revision\":{revision},\"rates\":[");
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
    text + "]}\n\n"
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
        let expected =
            "retry: 500\ndata: {\"at\":5,\"revision\":6,\"rates\":[[2,1000,0],[3,0,7]]}\n\n";
        assert_eq!(event(5, 6, &used), expected);
    }
}
