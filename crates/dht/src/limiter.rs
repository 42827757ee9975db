//! How many queries are answered: per network, and altogether.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::address::Address;

/// Time between two answers to one network, in the long run.
const NETWORK_INTERVAL: Duration = Duration::from_millis(100);
/// Most answers to one network at once.
const NETWORK_BURST: u32 = 40;
/// Most networks that are counted one by one. More of them share one limit.
const MAX_NETWORKS: usize = 4096;
/// Seconds whose answers may all be sent at once.
const BURST_SECONDS: u32 = 2;

/// Decides whether a query is answered, so that queries with a false sender address cannot direct
/// much traffic to that address.
#[derive(Debug)]
pub(crate) struct Limiter<A> {
    networks: HashMap<A, Rate>,
    /// Of the networks that are not counted one by one.
    others: Rate,
    all: Rate,
    interval: Duration,
    burst: u32,
    swept: Option<Instant>,
}

/// When the answers so far would have ended at the rate allowed.
#[derive(Debug, Clone, Copy, Default)]
struct Rate(Option<Instant>);

impl Rate {
    fn fits(self, interval: Duration, burst: u32, now: Instant) -> bool {
        let backlog = self.0.map(|end| end.saturating_duration_since(now));
        backlog.is_none_or(|backlog| backlog <= interval * (burst - 1))
    }

    fn count(&mut self, interval: Duration, now: Instant) {
        self.0 = Some(self.0.map_or(now, |end| end.max(now)) + interval);
    }

    fn is_idle(self, now: Instant) -> bool {
        self.0.is_none_or(|end| end <= now)
    }
}

impl<A: Address> Limiter<A> {
    /// Allows this many answers a second, at least 1.
    pub fn new(answers_per_second: u32) -> Self {
        let per_second = answers_per_second.max(1);
        Self {
            networks: HashMap::new(),
            others: Rate::default(),
            all: Rate::default(),
            interval: Duration::from_secs(1) / per_second,
            burst: per_second.saturating_mul(BURST_SECONDS),
            swept: None,
        }
    }

    /// Whether a query from `from` is answered; if so, it is counted.
    pub fn allows(&mut self, from: A, now: Instant) -> bool {
        let network = from.network();
        let counted = self.networks.contains_key(&network) || self.has_room(now);
        let rate = match counted {
            true => self.networks.entry(network).or_default(),
            false => &mut self.others,
        };
        let allowed = rate.fits(NETWORK_INTERVAL, NETWORK_BURST, now)
            && self.all.fits(self.interval, self.burst, now);
        if allowed {
            rate.count(NETWORK_INTERVAL, now);
            self.all.count(self.interval, now);
        }
        allowed
    }

    fn has_room(&mut self, now: Instant) -> bool {
        let full = self.networks.len() >= MAX_NETWORKS;
        let swept = |at: Instant| now.saturating_duration_since(at) < Duration::from_secs(1);
        if full && !self.swept.is_some_and(swept) {
            self.swept = Some(now);
            self.networks.retain(|_, rate| !rate.is_idle(now));
        }
        self.networks.len() < MAX_NETWORKS
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    fn addr(number: u32) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(0x0800_0000 + (number << 8)), 1)
    }

    fn allowed(limiter: &mut Limiter<SocketAddrV4>, from: SocketAddrV4, now: Instant) -> u32 {
        (0..1000)
            .map(|_| u32::from(limiter.allows(from, now)))
            .sum()
    }

    #[test]
    fn a_network_gets_a_burst_and_then_its_rate() {
        let start = Instant::now();
        let mut limiter = Limiter::new(1000);
        assert_eq!(allowed(&mut limiter, addr(1), start), NETWORK_BURST);
        // Another host of the network.
        assert!(!limiter.allows(SocketAddrV4::new(Ipv4Addr::new(8, 0, 1, 9), 5), start));
        assert_eq!(allowed(&mut limiter, addr(2), start), NETWORK_BURST);
        let later = start + Duration::from_secs(1);
        assert_eq!(allowed(&mut limiter, addr(1), later), 10);
    }

    #[test]
    fn all_networks_together_are_limited() {
        let start = Instant::now();
        let mut limiter = Limiter::new(50);
        let sum: u32 = (0..20)
            .map(|at| allowed(&mut limiter, addr(at), start))
            .sum();
        assert_eq!(sum, 100);
        let later = start + Duration::from_secs(1);
        let sum: u32 = (20..40)
            .map(|at| allowed(&mut limiter, addr(at), later))
            .sum();
        assert_eq!(sum, 50);
    }

    #[test]
    fn networks_are_remembered_only_while_they_ask() {
        let start = Instant::now();
        let mut limiter = Limiter::new(1_000_000);
        for number in 0..2 * MAX_NETWORKS as u32 {
            limiter.allows(addr(number), start);
        }
        assert_eq!(limiter.networks.len(), MAX_NETWORKS);
        // The networks beyond the limit share one rate.
        assert!(!limiter.allows(addr(3 * MAX_NETWORKS as u32), start));
        assert!(limiter.allows(
            addr(5 * MAX_NETWORKS as u32),
            start + Duration::from_secs(10)
        ));
        assert_eq!(limiter.networks.len(), 1);
    }
}
