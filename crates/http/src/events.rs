//! Streams of events to pages: server-sent events (HTML, 9.2).

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, timeout_at};

/// Longest time that a stream of events lasts. Browsers then open another one, which is authenticated anew.
const STREAM_TIME: Duration = Duration::from_secs(300);

/// Events about one thing, for any number of readers. A reader that is slow misses events, and gets the
/// last one: memory is that of one event.
#[derive(Debug)]
pub struct Topic(watch::Sender<Bytes>);

impl Default for Topic {
    fn default() -> Self {
        Self(watch::Sender::new(Bytes::new()))
    }
}

impl Topic {
    /// Sends an event to all readers, with `data` as its data: one line. Browsers whose stream has ended
    /// begin it anew after half a second.
    pub fn publish(&self, data: &str) {
        debug_assert!(!data.contains('\n'), "the data of an event is one line");
        let event = format!("retry: 500\ndata: {data}\n\n");
        self.0.send_replace(event.into());
    }

    /// The last event and each later one, as long as the reader `may_read`. That is asked before each
    /// event, and whenever `changes` reports that rights may have changed.
    pub fn stream(
        &self,
        changes: watch::Receiver<u64>,
        may_read: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Response {
        let end = Instant::now() + STREAM_TIME;
        // The last event is sent at once: a page need not wait for its first data.
        let mut events = self.0.subscribe();
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
        let events = stream::unfold((events, changes), next);
        (head, Body::from_stream(events)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn readers_get_events_while_they_may() {
        let topic = Topic::default();
        topic.publish("1");
        let (changes, changed) = watch::channel(0);
        let right = Arc::new(AtomicBool::new(true));
        let may_read = {
            let right = Arc::clone(&right);
            move || right.load(Ordering::Relaxed)
        };
        let mut body = topic.stream(changed, may_read).into_body();
        let mut next = async || {
            let frame = body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            Some(String::from_utf8(data.to_vec()).unwrap())
        };
        let event = |data| Some(format!("retry: 500\ndata: {data}\n\n"));
        assert_eq!(next().await, event(1));
        // A slow reader gets the last event alone.
        topic.publish("2");
        topic.publish("3");
        assert_eq!(next().await, event(3));
        // A change of rights ends the stream without another event.
        right.store(false, Ordering::Relaxed);
        changes.send_replace(1);
        assert_eq!(next().await, None);
    }
}
