//! Peers that others have announced here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::address::Address;
use crate::id::Id;

/// How long an announced peer is kept. Other programs keep peers as long.
pub const PEER_LIFETIME: Duration = Duration::from_secs(30 * 60);
/// How often to announce a peer again while its torrent is active: one announcement may be lost,
/// and nodes that came nearer to the info-hash since the last one learn the peer.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(14 * 60);

/// Most peers kept of one torrent.
const MAX_PEERS_PER_TORRENT: usize = 200;
/// Most peers kept of one torrent and network: several hosts may share one IP address.
const MAX_NETWORK_PEERS_PER_TORRENT: usize = 8;
/// Most peers kept of one network.
const MAX_PEERS_PER_NETWORK: usize = 1024;
/// Most peers kept altogether: 3 MiB with SCION addresses.
const MAX_PEERS: usize = 50_000;

/// Announced peers by torrent.
#[derive(Debug)]
pub(crate) struct Store<A> {
    torrents: HashMap<Id, Vec<Stored<A>>>,
    /// How many peers each network has announced.
    networks: HashMap<A, usize>,
    peers: usize,
    max_torrents: usize,
}

#[derive(Debug, Clone, Copy)]
struct Stored<A> {
    addr: A,
    announced: Instant,
}

impl<A: Address> Store<A> {
    pub fn new(max_torrents: usize) -> Self {
        Self {
            torrents: HashMap::new(),
            networks: HashMap::new(),
            peers: 0,
            max_torrents: max_torrents.max(1),
        }
    }

    /// Keeps a peer, or keeps it longer. At a limit of a torrent, the oldest announcement that the new
    /// one counts against is replaced. For a new torrent the lightest one is forgotten: each network
    /// has the same weight, spread over all of its peers, so that a flood from few networks displaces
    /// its own torrents. With too many peers altogether, the oldest one of the network that has most
    /// gives way to a network with fewer. Returns whether the peer is kept: too many peers of its
    /// network are refused.
    pub fn announce(&mut self, info_hash: Id, addr: A, now: Instant) -> bool {
        let new = Stored {
            addr,
            announced: now,
        };
        let network = addr.network();
        if let Some(peers) = self.torrents.get_mut(&info_hash) {
            if let Some(known) = peers.iter_mut().find(|known| known.addr == addr) {
                *known = new;
                return true;
            }
            let same = |known: &&mut Stored<A>| known.addr.network() == network;
            let of_network = peers.iter_mut().filter(same).count();
            if of_network >= MAX_NETWORK_PEERS_PER_TORRENT {
                let oldest = peers
                    .iter_mut()
                    .filter(same)
                    .min_by_key(|known| known.announced);
                oldest.into_iter().for_each(|oldest| *oldest = new);
                return true;
            }
        }
        if self.networks.get(&network).copied().unwrap_or(0) >= MAX_PEERS_PER_NETWORK {
            return false;
        }
        self.make_room(info_hash);
        if self.peers >= MAX_PEERS && !self.outdo_largest(network) {
            return false;
        }
        self.torrents.entry(info_hash).or_default().push(new);
        *self.networks.entry(network).or_default() += 1;
        self.peers += 1;
        true
    }

    /// Makes room for one more peer of the torrent.
    fn make_room(&mut self, info_hash: Id) {
        if let Some(peers) = self.torrents.get_mut(&info_hash) {
            if peers.len() >= MAX_PEERS_PER_TORRENT {
                let oldest = (0..peers.len()).min_by_key(|at| peers[*at].announced);
                let removed = oldest.map(|at| peers.swap_remove(at));
                self.uncount(removed.as_slice());
            }
        } else if self.torrents.len() >= self.max_torrents {
            let removed = self.lightest().and_then(|hash| self.torrents.remove(&hash));
            self.uncount(&removed.unwrap_or_default());
        }
    }

    /// The torrent whose peers weigh least.
    fn lightest(&self) -> Option<Id> {
        let mut lightest: Option<(f64, Id)> = None;
        for (hash, peers) in &self.torrents {
            let most = lightest.map_or(f64::INFINITY, |(weight, _)| weight);
            let mut weight = 0.0;
            for peer in peers {
                let of_network = self.networks.get(&peer.addr.network());
                weight += 1.0 / of_network.copied().unwrap_or(1) as f64;
                // The rest does not make it lighter.
                if weight > most {
                    break;
                }
            }
            let is_lighter = lightest.is_none_or(|(least, id)| (weight, *hash) < (least, id));
            if is_lighter {
                lightest = Some((weight, *hash));
            }
        }
        lightest.map(|(_, hash)| hash)
    }

    /// Forgets the oldest peer of the network that has most, for one of a network that still has fewer
    /// with that. Returns whether there is such a network.
    fn outdo_largest(&mut self, newcomer: A) -> bool {
        let own = self.networks.get(&newcomer).copied().unwrap_or(0);
        let largest = self.networks.iter().max_by_key(|(_, count)| **count);
        let Some((largest, _)) = largest.filter(|(_, count)| **count > own + 1) else {
            return false;
        };
        let largest = *largest;
        let all = self.torrents.iter().flat_map(|(hash, peers)| {
            let numbered = peers.iter().enumerate();
            numbered.map(move |(at, peer)| (*hash, at, peer))
        });
        let of_largest = all.filter(|(_, _, peer)| peer.addr.network() == largest);
        let oldest = of_largest.min_by_key(|(hash, _, peer)| (peer.announced, *hash));
        let Some((hash, at, _)) = oldest else {
            return false;
        };
        let mut removed = None;
        if let Some(peers) = self.torrents.get_mut(&hash) {
            removed = Some(peers.swap_remove(at));
            if peers.is_empty() {
                self.torrents.remove(&hash);
            }
        }
        self.uncount(removed.as_slice());
        true
    }

    fn uncount(&mut self, removed: &[Stored<A>]) {
        self.peers -= removed.len();
        for stored in removed {
            let network = stored.addr.network();
            if let Some(count) = self.networks.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    self.networks.remove(&network);
                }
            }
        }
    }

    /// Random peers of the torrent, as many as fit `budget` bytes in bencoded compact form.
    pub fn sample(&self, info_hash: Id, mut budget: usize, rng: &mut Rng) -> Vec<A> {
        let Some(peers) = self.torrents.get(&info_hash) else {
            return Vec::new();
        };
        // A run around a random place: as random as needed, and no list is shuffled per query.
        let start = rng.usize(..peers.len().max(1));
        let run = peers[start..].iter().chain(&peers[..start]);
        let fits = |stored: &Stored<A>| {
            let size = stored.addr.compact().len() + 3;
            let left = budget.checked_sub(size)?;
            budget = left;
            Some(stored.addr)
        };
        run.map_while(fits).collect()
    }

    /// Forgets the peers that were last announced too long ago.
    pub fn expire(&mut self, now: Instant) {
        let mut expired = Vec::new();
        self.torrents.retain(|_, peers| {
            let old = |stored: &mut Stored<A>| {
                now.saturating_duration_since(stored.announced) >= PEER_LIFETIME
            };
            expired.extend(peers.extract_if(.., old));
            !peers.is_empty()
        });
        self.uncount(&expired);
    }

    /// Number of torrents with peers.
    pub fn torrents(&self) -> usize {
        self.torrents.len()
    }

    /// Number of peers.
    pub fn peers(&self) -> usize {
        self.peers
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    fn addr(network: u32, host: u32) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(0x0800_0000 + (network << 8) + host), 6881)
    }

    fn hash(number: u32) -> Id {
        let mut id = Id([0; 20]);
        id.0[..4].copy_from_slice(&number.to_be_bytes());
        id
    }

    fn all<A: Address>(store: &Store<A>, number: u32) -> Vec<A> {
        store.sample(hash(number), usize::MAX, &mut Rng::with_seed(1))
    }

    #[test]
    fn peers_are_kept_for_half_an_hour() {
        let start = Instant::now();
        let mut store = Store::new(10);
        assert!(store.announce(hash(1), addr(1, 1), start));
        let later = start + Duration::from_secs(20 * 60);
        assert!(store.announce(hash(1), addr(2, 1), later));
        store.expire(start + PEER_LIFETIME);
        assert_eq!(all(&store, 1), [addr(2, 1)]);
        assert!(store.announce(hash(1), addr(2, 1), start + Duration::from_secs(40 * 60)));
        store.expire(later + PEER_LIFETIME);
        assert_eq!((store.torrents(), store.peers()), (1, 1));
        store.expire(start + Duration::from_secs(70 * 60));
        assert_eq!(
            (store.torrents(), store.peers(), store.networks.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn samples_fit_their_budget_and_differ() {
        let start = Instant::now();
        let mut store = Store::new(10);
        (0..150).for_each(|at| assert!(store.announce(hash(1), addr(at, 1), start)));
        let mut rng = Rng::with_seed(1);
        let one = store.sample(hash(1), 640, &mut rng);
        assert_eq!(one.len(), 71);
        assert_ne!(one, store.sample(hash(1), 640, &mut rng));
        assert!(store.sample(hash(2), 640, &mut rng).is_empty());
    }

    #[test]
    fn the_smallest_torrent_makes_room_for_a_new_one() {
        let start = Instant::now();
        let mut store = Store::new(2);
        for (torrent, network) in [(1, 1), (1, 2), (2, 1), (3, 1)] {
            assert!(store.announce(hash(torrent), addr(network, 1), start));
        }
        assert_eq!([1, 2, 3].map(|at| all(&store, at).len()), [2, 0, 1]);
        assert_eq!(store.peers(), 3);
    }

    #[test]
    fn a_flood_of_torrents_from_few_networks_displaces_its_own() {
        let start = Instant::now();
        let mut store = Store::new(2000);
        // Two peers of a torrent that only they announce, and one of another.
        for (torrent, network) in [(0, 500_000), (0, 500_001), (1, 500_002)] {
            assert!(store.announce(hash(torrent), addr(network, 1), start));
        }
        for torrent in 2..6000 {
            let later = start + Duration::from_millis(torrent.into());
            store.announce(hash(torrent), addr(torrent % 50, torrent / 50 % 200), later);
            assert!(store.torrents() <= 2000);
        }
        assert_eq!([0, 1].map(|at| all(&store, at).len()), [2, 1]);
    }

    #[test]
    fn a_full_store_takes_peers_of_networks_that_have_few() {
        let start = Instant::now();
        let mut store = Store::new(2000);
        // 50 networks fill it: 1,000 peers of each, 5 in each of 200 torrents.
        for at in 0..MAX_PEERS as u32 {
            let (network, number) = (at % 50, at / 50);
            let later = start + Duration::from_millis(at.into());
            // No torrent is full.
            let torrent = network / 25 * 200 + number / 5;
            assert!(store.announce(hash(torrent), addr(network, number % 5), later));
        }
        assert_eq!(store.peers(), MAX_PEERS);
        let later = start + Duration::from_secs(600);
        assert!(!store.announce(hash(1), addr(7, 77), later));
        // Honest peers come, and the flood has as much less.
        for at in 0..300 {
            assert!(store.announce(hash(7000 + at), addr(1000 + at, 1), later));
            assert_eq!(store.peers(), MAX_PEERS);
        }
        assert!((0..300).all(|at| all(&store, 7000 + at).len() == 1));
        let most = store.networks.values().max();
        assert_eq!(most, Some(&994));
    }

    proptest! {
        #[test]
        fn limits_hold(announcements in prop::collection::vec((0..4_u32, 0..3_u32, 0..400_u32), 0..900)) {
            let mut now = Instant::now();
            let mut store = Store::new(3);
            for (torrent, network, host) in announcements {
                now += Duration::from_secs(5);
                // Most peers of the first torrent, each from a network of its own.
                let addr = if torrent < 2 { addr(100 + host, 1) } else { addr(network, host % 200) };
                store.announce(hash(torrent), addr, now);
                if host % 50 == 0 {
                    store.expire(now);
                }
                let sum: usize = store.torrents.values().map(Vec::len).sum();
                prop_assert_eq!(store.peers, sum);
                prop_assert_eq!(store.networks.values().sum::<usize>(), sum);
                prop_assert!(store.torrents.len() <= 3);
                for peers in store.torrents.values() {
                    prop_assert!(peers.len() <= MAX_PEERS_PER_TORRENT && !peers.is_empty());
                    let of = |network| peers.iter().filter(|one| one.addr.network() == network).count();
                    let most = peers.iter().map(|one| of(one.addr.network())).max();
                    prop_assert!(most <= Some(MAX_NETWORK_PEERS_PER_TORRENT));
                }
            }
        }

        #[test]
        fn a_network_holds_a_bounded_number_of_peers(extra in 0..100_u32) {
            let start = Instant::now();
            let mut store = Store::new(10_000);
            let kept = (0..MAX_PEERS_PER_NETWORK as u32 + extra)
                .filter(|at| store.announce(hash(*at), addr(1, at % 200), start))
                .count();
            prop_assert_eq!(kept, MAX_PEERS_PER_NETWORK);
        }
    }
}
