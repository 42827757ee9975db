//! Random bytes for the framing, with both kinds of lengths that protocols have.

use hawser_fuzz::{fuzz, samples};

use super::tests::{Long, Short, TestMessage, bodies};
use super::{ControlError, ControlMessage, Framing};

/// What is read is written again as it was read, and no more is held than a message takes.
fn read_again<M: ControlMessage>(input: &[u8]) {
    let mut framing = Framing::<M>::default();
    let mut again = Vec::new();
    for piece in input.chunks(input.len() / 2 + 1) {
        framing.push(piece);
        loop {
            match framing.pop() {
                Ok(Some(message)) => message.encode(&mut again),
                Ok(None) => break,
                Err(ControlError::TooLong { length, max }) => {
                    assert!(length > max as u64);
                    return;
                }
                Err(ControlError::Invalid(_)) => return,
                Err(_) => unreachable!("there is no stream"),
            }
        }
    }
    assert_eq!(again, input[..again.len()]);
    assert!(input.len() - again.len() <= M::MAX_LENGTH + 4);
    assert_eq!(framing.is_empty(), input.len() == again.len());
}

#[test]
fn any_bytes_are_cut_into_messages_or_refused() {
    let mut valid = Vec::new();
    for body in samples(bodies()) {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        TestMessage::<2>(body.clone()).encode(&mut short);
        TestMessage::<4>(body).encode(&mut long);
        valid.extend([short, long]);
    }
    fuzz(&valid, |input| {
        read_again::<Short>(input);
        read_again::<Long>(input);
    });
}
