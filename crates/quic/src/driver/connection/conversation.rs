//! Whether the application answers what arrives.
//!
//! The protocol acknowledges every other packet as soon as it arrives. Where the application answers each at
//! once, as in remote procedure calls or a terminal, that takes a packet of its own and a wake-up of the peer in
//! every round trip, and the answer would have carried the acknowledgement.

use std::time::{Duration, Instant};

/// Exchanges in a row after which an answer is expected.
const EXCHANGES: u8 = 4;
/// The most packets of an exchange in each direction, acknowledgements among them. With more, some may wait for
/// room in the congestion window, which only an acknowledgement of the peer makes.
const PACKETS: usize = 3;
/// Longest wait for an answer: less than the delay of acknowledgements for which peers allow (25 ms: RFC 9000,
/// 18.2), so that they take nothing for lost.
const LONGEST: Duration = Duration::from_millis(20);

/// The exchanges of packets with a peer: some that arrive, then what the application sends.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Small exchanges in a row.
    exchanges: u8,
    /// When the application got something in the present one for which it waited.
    delivered: Option<Instant>,
    /// Packets of the present one in each direction.
    received: usize,
    sent: usize,
}

impl Conversation {
    /// Notes that a packet has arrived.
    pub(super) fn on_received(&mut self) {
        self.received += 1;
        self.bound();
    }

    /// Notes that the application gets what it waited for. Behind a packet that is lost it gets nothing, and the
    /// peer should learn that at once.
    pub(super) fn on_delivered(&mut self, now: Instant) {
        self.delivered.get_or_insert(now);
    }

    /// Notes that packets were sent, for whatever reason.
    pub(super) fn on_sent(&mut self, packets: usize) {
        self.sent += packets;
        self.bound();
    }

    /// Notes that the application had something to send, which is sent: the exchange ends.
    pub(super) fn on_answered(&mut self) {
        if self.delivered.take().is_some() {
            self.exchanges = (self.exchanges + 1).min(EXCHANGES);
            self.bound();
        }
        (self.received, self.sent) = (0, 0);
    }

    /// Until when the application may answer what has arrived; `None` if that is not expected.
    pub(super) fn answers_until(&mut self, now: Instant) -> Option<Instant> {
        let until = self.delivered? + LONGEST;
        if until <= now {
            self.exchanges = 0;
        }
        (self.exchanges == EXCHANGES).then_some(until)
    }

    fn bound(&mut self) {
        if self.received.max(self.sent) > PACKETS {
            self.exchanges = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a packet arrive for which the application waits.
    fn deliver(conversation: &mut Conversation, now: Instant) {
        conversation.on_received();
        conversation.on_delivered(now);
    }

    /// A conversation in which an answer is expected, and when its last exchange ended.
    fn established() -> (Conversation, Instant) {
        let (mut conversation, mut now) = (Conversation::default(), Instant::now());
        for _ in 0..EXCHANGES {
            deliver(&mut conversation, now);
            assert_eq!(conversation.answers_until(now), None);
            now += Duration::from_millis(5);
            conversation.on_sent(1);
            conversation.on_answered();
        }
        (conversation, now)
    }

    #[test]
    fn an_answer_is_expected_after_some_for_a_bounded_time() {
        let (mut conversation, now) = established();
        assert_eq!(conversation.answers_until(now), None, "nothing has arrived");
        deliver(&mut conversation, now);
        let later = now + Duration::from_millis(1);
        deliver(&mut conversation, later);
        assert_eq!(conversation.answers_until(later), Some(now + LONGEST));
        assert_eq!(conversation.answers_until(now + LONGEST), None);
        // The application did not answer, so it is not waited for again.
        assert_eq!(conversation.answers_until(later), None);
    }

    #[test]
    fn much_in_either_direction_is_no_conversation() {
        let (mut conversation, now) = established();
        (0..=PACKETS).for_each(|_| deliver(&mut conversation, now));
        assert_eq!(conversation.answers_until(now), None);
        let (mut conversation, now) = established();
        conversation.on_sent(PACKETS + 1);
        conversation.on_answered();
        deliver(&mut conversation, now);
        assert_eq!(conversation.answers_until(now), None);
    }

    #[test]
    fn what_the_application_does_not_get_is_acknowledged_at_once() {
        let (mut conversation, now) = established();
        // The first of two packets is lost.
        conversation.on_received();
        assert_eq!(conversation.answers_until(now), None);
        // It comes again.
        deliver(&mut conversation, now);
        assert!(conversation.answers_until(now).is_some());
    }

    #[test]
    fn what_the_application_sends_unasked_is_no_answer() {
        let (mut conversation, now) = (Conversation::default(), Instant::now());
        for _ in 0..2 * EXCHANGES {
            conversation.on_sent(1);
            conversation.on_answered();
        }
        deliver(&mut conversation, now);
        assert_eq!(conversation.answers_until(now), None);
    }
}
