//! A hash that only the holder of a secret can compute, and connection ids made of it.

use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// How long a connection id is given out. It is valid in this time and the next: clients use one for a
/// minute, and a tracker takes it for two (BEP 15).
const EPOCH: Duration = Duration::from_secs(120);

/// HMAC-SHA-256 under a secret of this process.
#[derive(Clone)]
pub(super) struct Keyed(Hmac<Sha256>);

impl Keyed {
    /// `secret` is random, and known to nobody else.
    pub fn new(secret: &[u8; 32]) -> Self {
        // A key as long as a block of SHA-256, as HMAC itself pads shorter ones.
        let mut key = [0; 64];
        key[..32].copy_from_slice(secret);
        Self(Hmac::new(&key.into()))
    }

    pub fn number(&self, message: &[u8]) -> u64 {
        let digest = self.0.clone().chain_update(message).finalize().into_bytes();
        digest
            .iter()
            .take(8)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed")
    }
}

/// Connection ids over UDP: a number that only a client that receives at its address knows. No state is
/// kept for each.
#[derive(Debug)]
pub(super) struct ConnectionIds {
    keyed: Keyed,
    begin: Instant,
}

impl ConnectionIds {
    /// `secret` as of [`Keyed::new`].
    pub fn new(secret: &[u8; 32], begin: Instant) -> Self {
        Self {
            keyed: Keyed::new(secret),
            begin,
        }
    }

    /// The id of a client at `from`, whose port does not matter: some NATs change it.
    pub fn of(&self, from: PeerAddr, now: Instant) -> u64 {
        self.at(from, self.epoch(now))
    }

    /// Whether `id` was given to `from`, at most four minutes ago.
    pub fn is_valid(&self, id: u64, from: PeerAddr, now: Instant) -> bool {
        let epoch = self.epoch(now);
        let before = epoch.checked_sub(1);
        id == self.at(from, epoch) || before.is_some_and(|before| id == self.at(from, before))
    }

    fn epoch(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.begin).as_secs() / EPOCH.as_secs()
    }

    fn at(&self, from: PeerAddr, epoch: u64) -> u64 {
        let ip = |ip: std::net::IpAddr| ip.to_canonical().to_string();
        let address = match from {
            PeerAddr::Ip(addr) => ip(addr.ip()),
            PeerAddr::Scion(addr) => format!("{},{}", addr.isd_as, ip(addr.host.ip())),
        };
        self.keyed.number(format!("{epoch} {address}").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_valid_for_its_address_and_time() {
        let begin = Instant::now();
        let ids = ConnectionIds::new(&[7; 32], begin);
        let peer = |text: &str| text.parse::<PeerAddr>().expect("a peer");
        let client = peer("10.0.0.1:6881");
        for age in [0, 60, 119, 120, 121, 500] {
            let given = begin + Duration::from_secs(age);
            let id = ids.of(client, given);
            for (later, valid) in [(0, true), (119, true), (120, true), (240, false)] {
                let now = given + Duration::from_secs(later);
                assert_eq!(ids.is_valid(id, client, now), valid, "{age} {later}");
            }
            assert!(ids.is_valid(id, peer("10.0.0.1:5"), given));
            for other in ["10.0.0.2:6881", "1-ff00:0:110,10.0.0.1:6881"] {
                assert!(!ids.is_valid(id, peer(other), given));
            }
            assert!(!ids.is_valid(id ^ 1, client, given));
        }
        let others = ConnectionIds::new(&[8; 32], begin);
        assert_ne!(ids.of(client, begin), others.of(client, begin));
    }
}
