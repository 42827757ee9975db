//! The networks of clients: how many peers each has, and how many requests it sends.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use hawser_address::{IsdAsn, PeerAddr, ScionAddr};

use super::keyed::Keyed;

/// The addresses that one client can be assumed to have all of, and its AS; none of SCION for IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Network(ScionAddr);

impl Network {
    pub fn of(addr: PeerAddr) -> Self {
        let addr = match addr {
            PeerAddr::Scion(addr) => addr,
            PeerAddr::Ip(addr) => ScionAddr::new(IsdAsn::WILDCARD, addr),
        };
        Self(addr.network())
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0.compact()
    }
}

/// How many peers there are by some key; keys without any take no memory.
#[derive(Debug)]
pub(super) struct Held<K>(HashMap<K, u32>);

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Held<K> {
    pub fn count(&self, key: &K) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }

    pub fn add(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    pub fn subtract(&mut self, key: &K) {
        if let Some(count) = self.0.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(key);
            }
        }
    }
}

/// Number of cells of [`Rates`].
const CELLS: usize = 1 << 16;

/// How many requests networks send. Each counts in a cell that its address and a secret choose; those that
/// share one, which nobody can bring about, share its allowance. So memory is bounded.
#[derive(Debug)]
pub(super) struct Rates {
    per_minute: u32,
    keyed: Keyed,
    begin: Instant,
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Requests left, in thousandths.
    left: u64,
    /// When that was so, in milliseconds since the begin.
    at: u64,
}

impl Rates {
    pub fn new(per_minute: u32, secret: &[u8; 32], now: Instant) -> Self {
        let full = Cell {
            left: burst(per_minute),
            at: 0,
        };
        let cells = if per_minute == 0 { 0 } else { CELLS };
        Self {
            per_minute,
            keyed: Keyed::new(secret),
            begin: now,
            cells: vec![full; cells],
        }
    }

    /// Counts a request. Returns whether the network may send it.
    pub fn take(&mut self, network: Network, now: Instant) -> bool {
        if self.cells.is_empty() {
            return true;
        }
        let at = self.keyed.number(&network.bytes()) as usize % CELLS;
        let cell = &mut self.cells[at];
        let since = now.saturating_duration_since(self.begin);
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let passed = millis
            .saturating_sub(cell.at)
            .min(Duration::from_secs(600).as_millis() as u64);
        // Thousandths in a millisecond are requests in a second.
        let gained = passed * u64::from(self.per_minute) / 60;
        if gained > 0 {
            cell.at = millis;
            cell.left = (cell.left + gained).min(burst(self.per_minute));
        }
        match cell.left.checked_sub(1000) {
            Some(left) => {
                cell.left = left;
                true
            }
            None => false,
        }
    }
}

/// What a network may send at once, in thousandths.
fn burst(per_minute: u32) -> u64 {
    u64::from(per_minute) * 2000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::of(text.parse().expect("a peer"))
    }

    #[test]
    fn a_network_gets_its_rate() {
        let begin = Instant::now();
        let mut rates = Rates::new(60, &[1; 32], begin);
        let a = network("10.0.0.1:1");
        let taken = |rates: &mut Rates, now| (0..1000).filter(|_| rates.take(a, now)).count();
        assert_eq!(taken(&mut rates, begin), 120);
        assert!(rates.take(network("10.0.0.2:1"), begin));
        assert_eq!(taken(&mut rates, begin + Duration::from_secs(10)), 10);
        assert_eq!(taken(&mut rates, begin + Duration::from_secs(100_000)), 120);
        // In small steps it is the same.
        let mut small = 0;
        for step in 0..100_000u64 {
            let now = begin + Duration::from_secs(100_000) + Duration::from_millis(step);
            small += usize::from(rates.take(a, now));
        }
        assert!((99..=101).contains(&small), "{small}");
    }

    #[test]
    fn without_a_limit_all_is_allowed() {
        let now = Instant::now();
        let mut rates = Rates::new(0, &[1; 32], now);
        assert!((0..10_000).all(|_| rates.take(network("10.0.0.1:1"), now)));
    }

    #[test]
    fn networks_are_told_apart() {
        assert_eq!(network("10.0.0.1:1"), network("10.0.0.1:2"));
        assert_eq!(network("[fd00::1]:1"), network("[fd00::2]:1"));
        assert_ne!(network("10.0.0.1:1"), network("10.0.0.2:1"));
        assert_ne!(network("10.0.0.1:1"), network("1-ff00:0:110,10.0.0.1:1"));
    }
}
