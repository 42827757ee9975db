//! Messages on their way to a control stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::protocol::Message;

/// Messages on their way to a control stream.
///
/// A peer that reads nothing makes them wait. Those of the session are bounded by what may be sent and
/// not seen ([`Outbox`](crate::protocol::Outbox)); of those that report a state, the last one counts,
/// and takes the place of the one before.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
    peer_finished: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Encoded messages.
    bytes: Vec<u8>,
    seen: Option<u64>,
    interval: Option<u64>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, message: &Message) {
        let mut waiting = self.lock();
        match *message {
            Message::Seen(number) => waiting.seen = Some(number),
            Message::AckInterval(interval) => waiting.interval = Some(interval),
            _ => message.encode(&mut waiting.bytes),
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Nothing more is pushed.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// The peer sends no more messages.
    pub(super) fn on_peer_finished(&self) {
        self.peer_finished.notify_one();
    }

    /// Waits until the peer sends no more messages. For one task.
    pub(super) async fn peer_finished(&self) {
        self.peer_finished.notified().await;
    }

    /// Waits for messages, and takes all; `None` at the end.
    pub(super) async fn next(&self) -> Option<Bytes> {
        loop {
            {
                let waiting = &mut *self.lock();
                let mut bytes = std::mem::take(&mut waiting.bytes);
                let seen = waiting.seen.take().map(Message::Seen);
                let interval = waiting.interval.take().map(Message::AckInterval);
                for message in [seen, interval].into_iter().flatten() {
                    message.encode(&mut bytes);
                }
                if !bytes.is_empty() {
                    return Some(bytes.into());
                }
                if waiting.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Framing, SessionMessage};

    #[tokio::test]
    async fn reports_of_a_state_take_the_place_of_those_before() {
        let queue = Queue::default();
        let again = |number| Message::Ordered {
            number,
            message: SessionMessage::Again(number),
        };
        for number in 0..100_000 {
            queue.push(&Message::Seen(number));
            queue.push(&Message::AckInterval(number));
        }
        queue.push(&again(0));
        queue.push(&again(1));
        queue.close();
        let mut framing = Framing::default();
        framing.push(&queue.next().await.unwrap());
        let wanted = [
            again(0),
            again(1),
            Message::Seen(99_999),
            Message::AckInterval(99_999),
        ];
        for message in wanted {
            assert_eq!(framing.pop(), Ok(Some(message)));
        }
        assert_eq!(framing.pop(), Ok(None));
        assert_eq!(queue.next().await, None);
    }
}
