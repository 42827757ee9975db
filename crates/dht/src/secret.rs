//! Numbers that nobody can predict from those seen before.

use fastrand::Rng;
use sha1::{Digest, Sha1};

/// A source of secret numbers: SHA-1 of a key and a counter. The numbers of a `fastrand::Rng` are
/// easily predicted from a few of them, and transaction ids are seen by others.
#[derive(Debug)]
pub(crate) struct Secret {
    key: [u8; 32],
    counter: u64,
}

impl Secret {
    /// A source with a key from `rng`, which must be used for nothing else, and a generator for
    /// choices that need not be secret, from which the key does not follow.
    pub fn new(mut rng: Rng) -> (Self, Rng) {
        let mut key = [0; 32];
        rng.fill(&mut key);
        let mut secret = Self { key, counter: 0 };
        let [a, b, c, d, e, f, g, h, ..] = secret.next();
        let choices = Rng::with_seed(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        (secret, choices)
    }

    /// The next number.
    pub fn next(&mut self) -> [u8; 20] {
        self.counter += 1;
        let hash = Sha1::new().chain_update(self.key);
        hash.chain_update(self.counter.to_be_bytes())
            .finalize()
            .into()
    }

    /// The next number, cut to 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.next();
        u32::from_be_bytes([a, b, c, d])
    }
}
