//! What a source sends with its first message, before the server has answered.

use hawser_session::ControlMessage;

use crate::protocol::{Message, SessionMessage};

/// Most bytes of messages that go with `Open`: more than the first window of a connection takes
/// would arrive no earlier.
const BYTES: usize = 32 << 10;

/// The first messages of a session, encoded.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    bytes: Vec<u8>,
    /// How many they are.
    pub(crate) count: u64,
}

impl Opening {
    /// As many of the session's first `messages` as go with `Open`.
    pub(crate) fn of(messages: impl Iterator<Item = SessionMessage>) -> Self {
        let mut opening = Self::default();
        for (number, message) in (0..).zip(messages) {
            let before = opening.bytes.len();
            Message::Ordered { number, message }.encode(&mut opening.bytes);
            if opening.bytes.len() > BYTES {
                opening.bytes.truncate(before);
                break;
            }
            opening.count += 1;
        }
        opening
    }

    /// `message`, and what goes with it.
    pub(crate) fn after(&self, message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes.extend_from_slice(&self.bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::Framing;

    #[test]
    fn the_first_messages_follow_in_order_within_a_bound() {
        let entry = |size| SessionMessage::Entry(Bytes::from(vec![7; size]));
        let opening = Opening::of([entry(10), entry(20_000), entry(20_000), entry(10)].into_iter());
        assert_eq!(opening.count, 2);
        let mut framing = Framing::default();
        framing.push(&opening.after(&Message::Seen(0)));
        assert_eq!(framing.pop(), Ok(Some(Message::Seen(0))));
        for (number, size) in [(0, 10), (1, 20_000)] {
            let message = entry(size);
            assert_eq!(
                framing.pop(),
                Ok(Some(Message::Ordered { number, message }))
            );
        }
        assert_eq!(framing.pop(), Ok(None));
    }
}
