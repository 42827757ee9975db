//! Requests of a peer that wait for their blocks: each step takes the same time, however many wait, so that
//! a flood of requests and cancels costs no more than reading it.

use std::collections::{HashMap, VecDeque};

use crate::wire::Request;

/// Most requests that may wait: at 16 KiB each, 10 Gbit/s over 100 ms.
pub(crate) const MAX_WAITING: usize = 8192;

/// How often a request waits, and how many of these were cancelled: the first ones.
#[derive(Debug, Default)]
struct Count {
    waiting: u32,
    cancelled: u32,
}

/// Requests in the order received, with those that were cancelled until they would leave.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: VecDeque<Request>,
    counts: HashMap<Request, Count>,
    cancelled: usize,
}

impl Waiting {
    /// Number of requests that were not cancelled.
    pub fn len(&self) -> usize {
        self.queue.len() - self.cancelled
    }

    /// Adds a request. Returns false if there are [`MAX_WAITING`] already.
    pub fn push(&mut self, request: Request) -> bool {
        if self.len() >= MAX_WAITING {
            return false;
        }
        if self.queue.len() >= 2 * MAX_WAITING {
            self.sweep();
        }
        self.counts.entry(request).or_default().waiting += 1;
        self.queue.push_back(request);
        true
    }

    /// Takes a request back, if it waits.
    pub fn cancel(&mut self, request: Request) {
        if let Some(count) = self.counts.get_mut(&request)
            && count.cancelled < count.waiting
        {
            count.cancelled += 1;
            self.cancelled += 1;
        }
    }

    /// The next request.
    pub fn front(&mut self) -> Option<Request> {
        while let Some(request) = self.queue.front().copied() {
            let count = self.counts.get(&request);
            if count.is_none_or(|count| count.cancelled == 0) {
                return Some(request);
            }
            self.queue.pop_front();
            self.count_out(request);
        }
        None
    }

    /// Takes the next request.
    pub fn pop_front(&mut self) -> Option<Request> {
        let request = self.front()?;
        self.queue.pop_front();
        self.count_out(request);
        Some(request)
    }

    /// Removes those that were cancelled.
    fn sweep(&mut self) {
        for request in std::mem::take(&mut self.queue) {
            if !self.count_out(request) {
                self.counts.entry(request).or_default().waiting += 1;
                self.queue.push_back(request);
            }
        }
    }

    /// Counts a request that left the queue. Returns whether it was cancelled.
    fn count_out(&mut self, request: Request) -> bool {
        let Some(count) = self.counts.get_mut(&request) else {
            return false;
        };
        let is_cancelled = count.cancelled > 0;
        count.waiting -= 1;
        if is_cancelled {
            count.cancelled -= 1;
            self.cancelled -= 1;
        }
        if count.waiting == 0 {
            self.counts.remove(&request);
        }
        is_cancelled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(piece: u32) -> Request {
        Request {
            piece,
            begin: 0,
            length: 10,
        }
    }

    #[test]
    fn what_was_cancelled_is_forgotten_in_time() {
        let mut waiting = Waiting::default();
        for piece in 0..100_000 {
            assert!(waiting.push(request(piece)));
            waiting.cancel(request(piece));
            assert!(waiting.queue.len() <= 2 * MAX_WAITING);
        }
        assert_eq!((waiting.len(), waiting.pop_front()), (0, None));
        assert!(waiting.counts.is_empty());
    }

    proptest! {
        #[test]
        fn it_equals_a_simple_queue(
            steps in prop::collection::vec((0..4u8, 0..6u32), 0..300), sweeps: bool,
        ) {
            let (mut waiting, mut model) = (Waiting::default(), VecDeque::new());
            for (step, piece) in steps {
                match step {
                    0 | 1 => {
                        prop_assert!(waiting.push(request(piece)));
                        model.push_back(request(piece));
                    }
                    2 => {
                        waiting.cancel(request(piece));
                        if let Some(at) = model.iter().position(|it| *it == request(piece)) {
                            model.remove(at);
                        }
                    }
                    _ => prop_assert_eq!(waiting.pop_front(), model.pop_front()),
                }
                if sweeps {
                    waiting.sweep();
                    prop_assert_eq!(waiting.cancelled, 0);
                }
                prop_assert_eq!(waiting.len(), model.len());
            }
            while let Some(request) = model.pop_front() {
                prop_assert_eq!(waiting.pop_front(), Some(request));
            }
            prop_assert_eq!(waiting.pop_front(), None);
        }
    }
}
