//! Tokens (BEP 5): a peer can be announced only from an address that has asked for peers before.

use std::time::{Duration, Instant};

use sha1::{Digest, Sha1};

use crate::address::Address;
use crate::id::Id;
use crate::secret::Secret;

/// How long a secret makes tokens. Tokens of the secret before are valid, too: from 5 to 10
/// minutes.
const ROTATION: Duration = Duration::from_secs(5 * 60);

/// Makes tokens, and recognises them.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// The secret in use, and the one before.
    secrets: [[u8; 20]; 2],
    since: Instant,
}

impl Tokens {
    pub fn new(secret: &mut Secret, now: Instant) -> Self {
        Self {
            secrets: [secret.next(), secret.next()],
            since: now,
        }
    }

    /// Changes the secret if that is due.
    pub fn advance(&mut self, secret: &mut Secret, now: Instant) {
        let age = now.saturating_duration_since(self.since);
        if age >= ROTATION {
            let before = if age < 2 * ROTATION {
                self.secrets[0]
            } else {
                secret.next()
            };
            self.secrets = [secret.next(), before];
            self.since = now;
        }
    }

    /// The token with which the host of `addr` may announce a peer of the torrent.
    pub fn token<A: Address>(&self, addr: A, info_hash: Id) -> [u8; 8] {
        token(&self.secrets[0], addr, info_hash)
    }

    /// Whether the token was made for that host and torrent, not too long ago.
    pub fn is_valid<A: Address>(&self, addr: A, info_hash: Id, given: &[u8]) -> bool {
        let mut secrets = self.secrets.iter();
        secrets.any(|secret| token(secret, addr, info_hash) == given)
    }
}

fn token<A: Address>(secret: &[u8; 20], addr: A, info_hash: Id) -> [u8; 8] {
    let hash = Sha1::new().chain_update(secret);
    let hash = hash.chain_update(addr.host().compact());
    let hash: [u8; 20] = hash.chain_update(info_hash.0).finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = hash;
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use fastrand::Rng;

    use super::*;

    #[test]
    fn a_token_is_for_one_host_and_torrent_and_expires() {
        let start = Instant::now();
        let (mut secret, _) = Secret::new(Rng::with_seed(1));
        let mut tokens = Tokens::new(&mut secret, start);
        let addr: SocketAddrV4 = "93.184.216.34:6881".parse().unwrap();
        let hash = Id([1; 20]);
        let token = tokens.token(addr, hash);
        assert!(tokens.is_valid(addr, hash, &token));
        assert!(tokens.is_valid(addr.with_port(7), hash, &token));
        assert!(!tokens.is_valid(
            "93.184.216.35:6881".parse::<SocketAddrV4>().unwrap(),
            hash,
            &token
        ));
        assert!(!tokens.is_valid(addr, Id([2; 20]), &token));
        assert!(!tokens.is_valid(addr, hash, &token[..7]) && !tokens.is_valid(addr, hash, b""));
        tokens.advance(&mut secret, start + ROTATION);
        assert!(tokens.is_valid(addr, hash, &token));
        assert_ne!(tokens.token(addr, hash), token);
        tokens.advance(&mut secret, start + 2 * ROTATION);
        assert!(!tokens.is_valid(addr, hash, &token));
        let token = tokens.token(addr, hash);
        tokens.advance(&mut secret, start + 5 * ROTATION);
        assert!(!tokens.is_valid(addr, hash, &token));
    }
}
