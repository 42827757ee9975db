//! Tasks that wait for room to write, and when they are woken.
//!
//! The protocol reports room with almost every acknowledgement, mostly for some packets. A task that is
//! woken for each of them writes little, and costs more than what it writes. Streams keep two congestion
//! windows beyond what is under way, so that room may gather for a part of a round trip.

use std::collections::HashMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use noq_proto::StreamId;

/// Writers of one connection. Pure: the caller passes the time.
#[derive(Debug, Default)]
pub(super) struct Writers {
    waiting: HashMap<StreamId, Waker>,
    /// Those of the waiting streams that have room.
    writable: Vec<StreamId>,
    /// When writers were woken last.
    woken: Option<Instant>,
}

impl Writers {
    /// Lets the task of `waker` wait for room in a stream.
    pub(super) fn wait(&mut self, id: StreamId, waker: Waker) {
        self.waiting.insert(id, waker);
        self.writable.retain(|writable| *writable != id);
    }

    /// Notes that a stream has room.
    pub(super) fn on_writable(&mut self, id: StreamId) {
        if self.waiting.contains_key(&id) && !self.writable.contains(&id) {
            self.writable.push(id);
        }
    }

    /// The task that waits for room in a stream which will have none.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<Waker> {
        self.writable.retain(|writable| *writable != id);
        self.waiting.remove(&id)
    }

    /// All tasks that wait.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Waker> {
        self.writable.clear();
        self.waiting.drain().map(|(_, waker)| waker)
    }

    /// Adds the tasks whose streams have room to `woken`, at most once in `pause`. Returns when it will
    /// add those that it leaves waiting; `None` when there are none.
    pub(super) fn wake(
        &mut self,
        now: Instant,
        pause: Duration,
        woken: &mut Vec<Waker>,
    ) -> Option<Instant> {
        self.writable.first()?;
        let due = self.woken.map(|woken| woken + pause);
        if let Some(due) = due.filter(|due| *due > now) {
            return Some(due);
        }
        let waiting = &mut self.waiting;
        let ready = self.writable.drain(..).filter_map(|id| waiting.remove(&id));
        woken.extend(ready);
        self.woken = Some(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(4);

    fn stream(index: u64) -> StreamId {
        StreamId::new(noq_proto::Side::Client, noq_proto::Dir::Bi, index)
    }

    fn waker() -> Waker {
        Waker::noop().clone()
    }

    #[test]
    fn room_gathers_between_two_wakes() {
        let (mut writers, mut woken) = (Writers::default(), Vec::new());
        let began = Instant::now();
        // Nothing was woken before: at once.
        writers.wait(stream(1), waker());
        writers.on_writable(stream(1));
        assert_eq!(writers.wake(began, PAUSE, &mut woken), None);
        assert_eq!(woken.len(), 1);
        for index in [1, 2] {
            writers.wait(stream(index), waker());
            writers.on_writable(stream(index));
        }
        let soon = began + PAUSE / 2;
        assert_eq!(writers.wake(soon, PAUSE, &mut woken), Some(began + PAUSE));
        assert_eq!(woken.len(), 1);
        assert_eq!(writers.wake(began + PAUSE, PAUSE, &mut woken), None);
        assert_eq!(woken.len(), 3);
    }

    #[test]
    fn a_stream_without_a_writer_wakes_nobody() {
        let (mut writers, mut woken) = (Writers::default(), Vec::new());
        writers.on_writable(stream(1));
        assert_eq!(writers.wake(Instant::now(), PAUSE, &mut woken), None);
        writers.wait(stream(1), waker());
        assert_eq!(writers.wake(Instant::now(), PAUSE, &mut woken), None);
        assert!(woken.is_empty());
    }

    proptest! {
        /// Each task that waits for a stream with room is woken when `wake` says, once.
        #[test]
        fn no_writer_is_forgotten(
            steps in prop::collection::vec((0u64..4, 0u8..3, 0u64..6), 1..200),
        ) {
            let mut writers = Writers::default();
            let mut now = Instant::now();
            // What each stream is waited for, and whether it has room.
            let mut expected = std::collections::BTreeMap::new();
            for (index, step, millis) in steps {
                now += Duration::from_millis(millis);
                match step {
                    0 => {
                        writers.wait(stream(index), waker());
                        expected.insert(index, false);
                    }
                    1 => {
                        writers.on_writable(stream(index));
                        expected.entry(index).and_modify(|room| *room = true);
                    }
                    _ => {
                        let removed = writers.remove(stream(index)).is_some();
                        prop_assert_eq!(removed, expected.remove(&index).is_some());
                    }
                }
                let mut woken = Vec::new();
                let due = writers.wake(now, PAUSE, &mut woken);
                let ready = expected.values().filter(|room| **room).count();
                match due {
                    Some(due) => {
                        prop_assert!(woken.is_empty() && ready > 0);
                        prop_assert!(due > now && due <= now + PAUSE);
                    }
                    None => {
                        prop_assert_eq!(woken.len(), ready);
                        expected.retain(|_, room| !*room);
                    }
                }
            }
            prop_assert_eq!(writers.drain().count(), expected.len());
        }
    }
}
