//! The handshake of MSE. A dials, B accepts; HASH is SHA-1, S the shared secret, SKEY the info-hash,
//! VC eight zero bytes, and each pad has up to 512 bytes:
//!
//! 1. A → B: key, pad
//! 2. B → A: key, pad
//! 3. A → B: HASH(`req1`, S), HASH(`req2`, SKEY) xor HASH(`req3`, S), then encrypted: VC, methods
//!    offered, length of pad, pad, length of IA, IA
//! 4. B → A: encrypted: VC, method selected, length of pad, pad
//!
//! What follows is encrypted or not as selected. IA is the beginning of what A sends, and always
//! encrypted. Neither side waits for the end of the first pads: it looks for what follows them.
//!
//! Both sides take no more bytes than the handshake has. What they keep before the peer has shown
//! that it knows the info-hash is at most 532 bytes.

mod initiator;
mod input;
mod outcome;
mod responder;
#[cfg(test)]
mod tests;

pub use self::initiator::Initiator;
pub use self::outcome::{Ciphers, Crypto, Established, HandshakeError, Received};
pub use self::responder::Responder;

/// Longest pad, in bytes.
const MAX_PAD: usize = 512;

/// The verification constant.
const VC: [u8; 8] = [0; 8];

/// Random bytes, up to [`MAX_PAD`].
fn random_pad(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut pad = vec![0; random.usize(..=MAX_PAD)];
    random.fill(&mut pad);
    pad
}
