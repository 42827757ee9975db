//! Wrong tokens, by the address that sent them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::admission::network;

/// Wrong tokens in a row that an address may send.
const BURST: u32 = 10;
/// Time after which it may send another one.
const REFILL: Duration = Duration::from_secs(6);
/// Most addresses that are remembered; those longest without a wrong token are forgotten first.
const ADDRESSES: usize = 10_000;

/// Wrong tokens, by the address that sent them. Guessing 256 bits is hopeless at any rate; what this
/// bounds is the noise, and what a short token of old would suffer.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<HashMap<IpAddr, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    wrong: u32,
    at: Duration,
}

impl Bucket {
    /// What is left of its wrong tokens `now`.
    fn at(self, now: Duration) -> Self {
        let past = now.saturating_sub(self.at);
        let forgiven = u32::try_from(past.as_secs() / REFILL.as_secs()).unwrap_or(u32::MAX);
        Self {
            wrong: self.wrong.saturating_sub(forgiven),
            at: match self.wrong > forgiven {
                true => self.at + REFILL * forgiven,
                false => now,
            },
        }
    }
}

impl Attempts {
    /// How long an address has to wait before it may send another token, if it has to, at the time
    /// `now`, since any beginning.
    fn wait(&self, address: IpAddr, now: Duration) -> Option<Duration> {
        let buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.get(&network(address))?.at(now);
        (bucket.wrong >= BURST).then(|| (bucket.at + REFILL).saturating_sub(now))
    }

    /// Counts a wrong token of an address. If there were too many, returns how long that has to wait
    /// instead.
    pub fn count(&self, address: IpAddr, now: Duration) -> Option<Duration> {
        let wait = self.wait(address, now);
        if wait.is_none() {
            self.wrong(address, now);
        }
        wait
    }

    /// An address has sent a wrong token.
    fn wrong(&self, address: IpAddr, now: Duration) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network(address);
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&address) {
            buckets.retain(|_, bucket| bucket.at(now).wrong > 0);
            let oldest = buckets.iter().min_by_key(|(_, bucket)| bucket.at);
            let oldest = oldest.map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| buckets.len() >= ADDRESSES) {
                buckets.remove(&oldest);
            }
        }
        let new = Bucket { wrong: 0, at: now };
        let bucket = buckets.entry(address).or_insert(new);
        *bucket = bucket.at(now);
        if bucket.wrong == 0 {
            bucket.at = now;
        }
        bucket.wrong = (bucket.wrong + 1).min(BURST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_waits_after_ten_wrong_tokens() {
        let attempts = Attempts::default();
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        let seconds = Duration::from_secs;
        for _ in 0..BURST {
            assert_eq!(attempts.wait(address, seconds(1)), None);
            attempts.wrong(address, seconds(1));
        }
        assert_eq!(attempts.wait(address, seconds(2)), Some(seconds(5)));
        assert_eq!(attempts.wait("10.0.0.2".parse().unwrap(), seconds(2)), None);
        assert_eq!(attempts.wait(address, seconds(7)), None);
        attempts.wrong(address, seconds(7));
        assert_eq!(attempts.wait(address, seconds(7)), Some(seconds(6)));
        assert_eq!(attempts.wait(address, seconds(100)), None);
    }

    #[test]
    fn a_network_is_one_address_and_many_are_not_kept() {
        let attempts = Attempts::default();
        for host in 0..u128::from(BURST) {
            attempts.wrong(IpAddr::V6((1 << 64 | host).into()), Duration::ZERO);
        }
        let other = IpAddr::V6((1 << 64 | 0xffff).into());
        assert!(attempts.wait(other, Duration::ZERO).is_some());
        for host in 0..2 * ADDRESSES as u32 {
            attempts.wrong(IpAddr::V4(host.into()), Duration::from_secs(1));
        }
        assert_eq!(attempts.0.lock().unwrap().len(), ADDRESSES);
    }
}
