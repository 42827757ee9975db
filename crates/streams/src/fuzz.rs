//! Random bytes for what reads frames.

use bytes::{Bytes, BytesMut};
use hawser_fuzz::{fuzz, samples};

use crate::frame::tests::frames;
use crate::{Decoder, Frame};

/// The frames at the beginning of `bytes`; fails at the first that is none.
fn decode(bytes: &[u8]) -> Vec<Frame> {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    decoder.push(Bytes::copy_from_slice(bytes));
    while let Ok(Some(frame)) = decoder.pop() {
        frames.push(frame);
    }
    frames
}

#[test]
fn any_frame_is_decoded_or_refused() {
    let valid: Vec<Vec<u8>> = samples(frames())
        .iter()
        .map(|frame| {
            let mut bytes = BytesMut::new();
            frame.encode_to(&mut bytes);
            bytes.to_vec()
        })
        .collect();
    fuzz(&valid, |input| {
        let frames = decode(input);
        let mut again = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode_to(&mut again));
        assert_eq!(decode(&again), frames);
    });
}
