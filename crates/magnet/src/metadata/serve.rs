//! Answering the requests of a peer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::message::MetadataMessage;
use super::{MAX_METADATA_BYTES, piece_count, piece_length};
use crate::metadata::METADATA_PIECE;

/// How many times a peer gets each piece at once: requests may be repeated after a time-out.
const COPIES: u32 = 3;

/// Fewest answers that a peer gets at once.
const MIN_ANSWERS: u32 = 16;

/// Time after which a peer that has had all its answers gets one more.
const REFILL: Duration = Duration::from_secs(1);

/// Answers the requests of one peer for the pieces of an info dictionary.
///
/// It bounds what a peer costs: each piece three times, then one piece per second.
#[derive(Debug)]
pub struct Serve {
    info: Arc<[u8]>,
    /// Answers left.
    answers: u32,
    /// Since when answers have been refilled.
    since: Instant,
}

impl Serve {
    /// For one connection; all of them share `info`, the info dictionary as it is encoded.
    pub fn new(info: Arc<[u8]>, now: Instant) -> Self {
        let mut serve = Self {
            info,
            answers: 0,
            since: now,
        };
        serve.answers = serve.max_answers();
        serve
    }

    /// The length to announce (`metadata_size` in the extended handshake); `None` if the info
    /// dictionary is longer than what is served.
    pub fn metadata_size(&self) -> Option<u64> {
        (self.info.len() <= MAX_METADATA_BYTES).then_some(self.info.len() as u64)
    }

    /// Answers a request: with the piece; with a rejection if there is no such piece, or if the peer
    /// asks too often.
    pub fn answer(&mut self, piece: u32, now: Instant) -> MetadataMessage<'_> {
        self.refill(now);
        let length = piece_length(self.info.len(), piece);
        let is_served = self.metadata_size().is_some() && length > 0;
        // A rejection costs as much of what the peer may ask: it, too, is read, made and sent.
        let is_allowed = self.answers > 0;
        self.answers = self.answers.saturating_sub(1);
        if !is_served || !is_allowed {
            return MetadataMessage::Reject { piece };
        }
        let start = piece as usize * METADATA_PIECE;
        MetadataMessage::Data {
            piece,
            total: Some(self.info.len() as u64),
            bytes: &self.info[start..start + length],
        }
    }

    fn max_answers(&self) -> u32 {
        let pieces = piece_count(self.info.len().min(MAX_METADATA_BYTES)) as u32;
        (pieces * COPIES).max(MIN_ANSWERS)
    }

    fn refill(&mut self, now: Instant) {
        let time = now.saturating_duration_since(self.since);
        let answers = (time.as_nanos() / REFILL.as_nanos()) as u64;
        let missing = self.max_answers() - self.answers;
        if answers >= u64::from(missing) {
            self.answers = self.max_answers();
            self.since = self.since.max(now);
        } else {
            self.answers += answers as u32;
            self.since += REFILL * answers as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_data(message: MetadataMessage<'_>) -> bool {
        matches!(message, MetadataMessage::Data { .. })
    }

    #[test]
    fn pieces_are_sent_and_those_that_do_not_exist_rejected() {
        let now = Instant::now();
        let info: Arc<[u8]> = (0..40_000).map(|n| n as u8).collect();
        let mut serve = Serve::new(Arc::clone(&info), now);
        assert_eq!(serve.metadata_size(), Some(40_000));
        for piece in 0..3 {
            let start = piece as usize * METADATA_PIECE;
            let bytes = &info[start..40_000.min(start + METADATA_PIECE)];
            let total = Some(40_000);
            let expected = MetadataMessage::Data {
                piece,
                total,
                bytes,
            };
            assert_eq!(serve.answer(piece, now), expected);
        }
        for piece in [3, u32::MAX] {
            let answer = serve.answer(piece, now);
            assert_eq!(answer, MetadataMessage::Reject { piece });
        }
    }

    #[test]
    fn a_peer_that_asks_too_often_is_rejected_for_a_while() {
        let begun = Instant::now();
        let mut serve = Serve::new(vec![1; METADATA_PIECE * 10].into(), begun);
        let mut answers = |from: Instant, most| {
            let answers = (0..most).map(|piece| is_data(serve.answer(piece % 10, from)));
            answers.filter(|is_data| *is_data).count()
        };
        assert_eq!(answers(begun, 100), 30);
        assert_eq!(answers(begun + Duration::from_millis(4500), 100), 4);
        assert_eq!(answers(begun + Duration::from_secs(5), 100), 1);
        // Time that runs back changes nothing.
        assert_eq!(answers(begun, 5), 0);
        assert_eq!(answers(begun + Duration::from_secs(1000), 100), 30);
    }

    #[test]
    fn nothing_is_served_of_an_info_dictionary_that_nobody_fetches() {
        let now = Instant::now();
        let mut serve = Serve::new(vec![1; MAX_METADATA_BYTES + 1].into(), now);
        assert_eq!(serve.metadata_size(), None);
        assert!(!is_data(serve.answer(0, now)));
        let mut empty = Serve::new(Vec::new().into(), now);
        assert!(!is_data(empty.answer(0, now)));
    }
}
