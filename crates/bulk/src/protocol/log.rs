//! Messages of the session, complete and in order although connections come and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use thiserror::Error;

use super::SubflowKey;
use super::message::{Message, SessionMessage};

/// Most bytes of messages that are sent and not seen. It bounds what the other side holds while an
/// earlier message is missing.
const UNSEEN: usize = 8 << 20;

/// Most bytes held while an earlier message is missing: twice what the other side may send, for
/// different accounts of what a message takes.
const MAX_HELD: usize = 2 * UNSEEN;

/// How the other side broke the order of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LogError {
    /// It has seen messages that were not sent.
    #[error("it has seen messages below {seen}, and {sent} were sent")]
    SeenUnsent {
        /// The number that it reports.
        seen: u64,
        /// The number of the next message.
        sent: u64,
    },
    /// It sent more messages than it may before earlier ones are seen.
    #[error("peer exceeded the reorder buffer of {MAX_HELD} bytes")]
    TooManyAhead,
}

/// The messages that this side sends: numbered, and kept until they are seen.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The messages not seen.
    messages: VecDeque<Unseen>,
    /// The number of the first of them.
    first: u64,
    /// The numbers of those not sent over a connection that exists.
    waiting: BTreeSet<u64>,
    /// Bytes of those sent and not seen.
    in_flight: usize,
}

#[derive(Debug)]
struct Unseen {
    message: SessionMessage,
    /// The connection that it was sent over.
    over: Option<SubflowKey>,
}

impl Outbox {
    /// Adds a message.
    pub fn push(&mut self, message: SessionMessage) {
        self.waiting.insert(self.next_number());
        let over = None;
        self.messages.push_back(Unseen { message, over });
    }

    /// The next message to send over the connection `over`; it counts as sent. `None` when nothing
    /// waits, or too much is not seen.
    pub fn pop(&mut self, over: SubflowKey) -> Option<Message> {
        let number = *self.waiting.first()?;
        let unseen = &mut self.messages[(number - self.first) as usize];
        let size = unseen.message.size();
        // The first one is always sent: the other side waits for it.
        if self.in_flight + size > UNSEEN && number != self.first {
            return None;
        }
        self.waiting.remove(&number);
        self.in_flight += size;
        unseen.over = Some(over);
        let message = unseen.message.clone();
        Some(Message::Ordered { number, message })
    }

    /// The first `count` messages were sent over the connection `over` before it belonged to the
    /// session. Those that were sent over another connection since, or seen, are left as they are.
    pub fn sent(&mut self, over: SubflowKey, count: u64) {
        for number in self.first..count.min(self.next_number()) {
            if self.waiting.remove(&number) {
                let unseen = &mut self.messages[(number - self.first) as usize];
                unseen.over = Some(over);
                self.in_flight += unseen.message.size();
            }
        }
    }

    /// The other side has seen all messages below `number`.
    ///
    /// # Errors
    /// [`LogError::SeenUnsent`].
    pub fn on_seen(&mut self, number: u64) -> Result<(), LogError> {
        let sent = self.next_number();
        if number > sent {
            return Err(LogError::SeenUnsent { seen: number, sent });
        }
        while self.first < number
            && let Some(seen) = self.messages.pop_front()
        {
            if seen.over.is_some() {
                self.in_flight -= seen.message.size();
            }
            self.waiting.remove(&self.first);
            self.first += 1;
        }
        Ok(())
    }

    /// The connection `over` ended: what was sent over it and not seen is to be sent again.
    pub fn on_end(&mut self, over: SubflowKey) {
        for (number, unseen) in (self.first..).zip(&mut self.messages) {
            if unseen.over == Some(over) {
                unseen.over = None;
                self.in_flight -= unseen.message.size();
                self.waiting.insert(number);
            }
        }
    }

    /// How many messages are not seen.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether all messages are seen.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn next_number(&self) -> u64 {
        self.first + self.messages.len() as u64
    }
}

/// The messages that the other side sends: each once, in order.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The number of the next message to handle.
    next: u64,
    /// Messages that are not handled, by number.
    held: BTreeMap<u64, SessionMessage>,
    bytes: usize,
    /// The number last reported as seen.
    reported: u64,
}

impl Inbox {
    /// Takes a message that arrived over any connection. One that arrived before is dropped.
    ///
    /// # Errors
    /// [`LogError::TooManyAhead`].
    pub fn push(&mut self, number: u64, message: SessionMessage) -> Result<(), LogError> {
        if number < self.next || self.held.contains_key(&number) {
            return Ok(());
        }
        let size = message.size();
        if number > self.next && self.bytes + size > MAX_HELD {
            return Err(LogError::TooManyAhead);
        }
        self.bytes += size;
        let message = match number > self.next {
            true => message.detached(),
            false => message,
        };
        self.held.insert(number, message);
        Ok(())
    }

    /// The next message to handle; it counts as seen.
    pub fn pop(&mut self) -> Option<SessionMessage> {
        let message = self.held.remove(&self.next)?;
        self.bytes -= message.size();
        self.next += 1;
        Some(message)
    }

    /// The report of what was handled since the last report, if anything was. It is to be sent over
    /// any connection, and again with [`Self::report_again`] when that one ends.
    pub fn seen(&mut self) -> Option<Message> {
        (self.reported < self.next).then(|| {
            self.reported = self.next;
            Message::Seen(self.next)
        })
    }

    /// A connection ended that may have lost the last report.
    pub fn report_again(&mut self) {
        self.reported = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(size: usize, number: u64) -> SessionMessage {
        let mut entry = vec![0; size.max(8)];
        entry[..8].copy_from_slice(&number.to_be_bytes());
        SessionMessage::Entry(entry.into())
    }

    fn ordered(message: Message) -> (u64, SessionMessage) {
        match message {
            Message::Ordered { number, message } => (number, message),
            other => panic!("{other:?} is not a message of the session"),
        }
    }

    #[test]
    fn unseen_messages_are_bounded() {
        let size = 60_000;
        let count = 3 * UNSEEN / size;
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
        (0..count as u64).for_each(|number| outbox.push(entry(size, number)));
        let key = SubflowKey(0);
        let mut handled = 0;
        while !outbox.is_empty() {
            let sent: Vec<_> = std::iter::from_fn(|| outbox.pop(key))
                .map(ordered)
                .collect();
            assert!(sent.len() * size <= UNSEEN && !sent.is_empty());
            // The last first: all are held until the first arrives.
            for (number, message) in sent.into_iter().rev() {
                inbox.push(number, message).unwrap();
            }
            handled += std::iter::from_fn(|| inbox.pop()).count();
            let Some(Message::Seen(seen)) = inbox.seen() else {
                panic!("nothing seen");
            };
            outbox.on_seen(seen).unwrap();
        }
        assert_eq!(handled, count);
    }

    #[test]
    fn what_a_greeting_carried_is_sent_again_only_if_its_connection_ends() {
        let (first, other) = (SubflowKey(0), SubflowKey(1));
        let mut outbox = Outbox::default();
        (0..3).for_each(|number| outbox.push(entry(8, number)));
        outbox.sent(first, 2);
        assert_eq!(ordered(outbox.pop(other).unwrap()).0, 2);
        assert_eq!(outbox.pop(other), None);
        outbox.on_seen(1).unwrap();
        outbox.on_end(first);
        assert_eq!(ordered(outbox.pop(other).unwrap()).0, 1);
        outbox.on_seen(3).unwrap();
        assert!(outbox.is_empty() && outbox.in_flight == 0);
        outbox.sent(other, 9);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_message_that_waits_keeps_nothing_else_in_memory() {
        // What arrived together is one buffer, which every part of it keeps.
        let arrived = bytes::Bytes::from(vec![7; 60_000]);
        let mut inbox = Inbox::default();
        let early = SessionMessage::Entry(arrived.slice(..10));
        inbox.push(1, early.clone()).unwrap();
        drop(early);
        assert!(arrived.is_unique());
    }

    #[test]
    fn what_breaks_the_order_is_an_error() {
        let mut outbox = Outbox::default();
        outbox.push(SessionMessage::Ready);
        let error = LogError::SeenUnsent { seen: 2, sent: 1 };
        assert_eq!(outbox.on_seen(2), Err(error));
        let mut inbox = Inbox::default();
        let error = (1..1000).find_map(|number| inbox.push(number, entry(60_000, 0)).err());
        assert_eq!(error, Some(LogError::TooManyAhead));
        inbox.push(0, SessionMessage::Ready).unwrap();
        assert_eq!(inbox.pop(), Some(SessionMessage::Ready));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Send(u32),
        Deliver(u32),
        Report(u32),
        End(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => Just(Step::Push),
            3 => (0..3_u32).prop_map(Step::Send),
            3 => (0..3_u32).prop_map(Step::Deliver),
            1 => (0..3_u32).prop_map(Step::Report),
            1 => (0..3_u32).prop_map(Step::End),
        ]
    }

    proptest! {
        #[test]
        fn messages_are_handled_once_and_in_order(steps in prop::collection::vec(step(), 1..300)) {
            let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
            // What connections carry: three at a time, each replaced by one of another key.
            let mut keys = [SubflowKey(0), SubflowKey(1), SubflowKey(2)];
            let mut carried: [VecDeque<_>; 3] = Default::default();
            let mut pushed = 0_u64;
            let mut handled = 0_u64;
            let mut handle = |inbox: &mut Inbox| {
                while let Some(message) = inbox.pop() {
                    assert_eq!(message, entry(8, handled));
                    handled += 1;
                }
                handled
            };
            let at = |connection: u32| connection as usize;
            for step in steps {
                match step {
                    Step::Push => {
                        outbox.push(entry(8, pushed));
                        pushed += 1;
                    }
                    Step::Send(over) => {
                        carried[at(over)].extend(outbox.pop(keys[at(over)]).map(ordered));
                    }
                    Step::Deliver(over) => {
                        if let Some((number, message)) = carried[at(over)].pop_front() {
                            inbox.push(number, message).unwrap();
                        }
                        handle(&mut inbox);
                    }
                    Step::Report(over) => {
                        if let Some(Message::Seen(seen)) = inbox.seen() {
                            if over == 0 {
                                inbox.report_again();
                            } else {
                                outbox.on_seen(seen).unwrap();
                            }
                        }
                    }
                    Step::End(over) => {
                        carried[at(over)].clear();
                        outbox.on_end(keys[at(over)]);
                        keys[at(over)].0 += 3;
                    }
                }
            }
            // Whatever was lost arrives in the end.
            for key in keys {
                outbox.on_end(key);
            }
            while let Some((number, message)) = outbox.pop(SubflowKey(99)).map(ordered) {
                inbox.push(number, message).unwrap();
            }
            prop_assert_eq!(handle(&mut inbox), pushed);
            inbox.report_again();
            if let Some(Message::Seen(seen)) = inbox.seen() {
                outbox.on_seen(seen).unwrap();
            }
            prop_assert!(outbox.is_empty());
        }
    }
}
