//! Messages of peers, as a stream in parts: what is read is written so that it is read as the same. The
//! first byte says how the stream is cut.

#![no_main]

use hawser_wire::{Bitfield, Decoder, HANDSHAKE_BYTES, Handshake, Message, encode};
use libfuzzer_sys::fuzz_target;

/// Number of pieces of the torrent that messages are for.
const PIECES: u32 = 20;

/// Most that a decoder may hold between reads: a message, and its length.
const MAX_HELD: usize = 4 + (64 << 10);

fuzz_target!(|input: &[u8]| {
    if let Some(handshake) = input.first_chunk::<HANDSHAKE_BYTES>()
        && let Ok(info_hash) = Handshake::info_hash(handshake)
        && let Ok(handshake) = Handshake::decode(handshake, &[info_hash])
    {
        let again = Handshake::decode(&handshake.encode(), &[info_hash]);
        assert_eq!(again, Ok(handshake));
        let _ = handshake.peer_id.client();
    }
    let Some((step, stream)) = input.split_first() else {
        return;
    };
    let mut decoder = match step % 2 {
        0 => Decoder::new(PIECES),
        _ => Decoder::of_unknown(),
    };
    for part in stream.chunks(1 + usize::from(*step)) {
        decoder.buffer(part.len()).extend_from_slice(part);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => check(&message, *step),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error.to_string().lines().count(), 1);
                    return;
                }
            }
        }
        assert!(decoder.buffer(0).len() <= MAX_HELD + part.len());
    }
});

fn check(message: &Message, step: u8) {
    let mut out = Vec::new();
    encode(message, &mut out);
    let mut again = match step % 2 {
        0 => Decoder::new(PIECES),
        _ => Decoder::of_unknown(),
    };
    again.buffer(out.len()).extend_from_slice(&out);
    assert_eq!(again.next_message().ok().flatten().as_ref(), Some(message));
    match message {
        Message::Bitfield(bits) => {
            if let Some(pieces) = Bitfield::from_wire(bits, PIECES) {
                assert_eq!(pieces.as_wire(), &bits[..]);
                assert_eq!(pieces.iter().count(), pieces.count() as usize);
            }
        }
        Message::Request(request) if request.fits(1 << 20) => {
            assert!(request.begin + request.length <= 1 << 20);
        }
        _ => {}
    }
}
