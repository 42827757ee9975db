//! The swarms of a tracker: which peers each torrent has, and which of them a client is given.
//!
//! A peer is known by the address that its announce comes from, with the port that it names. Over IP it
//! can name a SCION address beside it. A client is given peers of the kinds that it reaches: IP peers if it
//! asks over IP, SCION peers if it has a SCION address; of both, as far as there are, half each. Seeders
//! are not given to seeders.
//!
//! Memory is bounded by [`SwarmOptions`]: a peer that is one too many is answered, but not stored. An
//! announce costs time by the number of peers in its answer, whatever the size of the swarm.

mod keyed;
mod members;
mod network;
mod options;
mod sample;
mod snapshot;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_address::{PeerAddr, ScionAddr};

use self::keyed::ConnectionIds;
use self::members::{Entry, Kind, Members};
use self::network::{Held, Network, Rates};
pub use self::options::{Counters, Rank, Reach, Refusal, SwarmOptions};
use self::sample::sample;
pub use self::snapshot::SnapshotError;
use crate::message::{AnnounceRequest, Answer, Event, Scraped};

/// Most peers that are removed by one call because they announced no more.
const MAX_EXPIRED: usize = 10_000;
/// How many candidates a ranking gets for each peer that is given.
const CANDIDATES: usize = 4;

/// Where a request comes from, and what its sender reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// The address that it comes from.
    pub addr: PeerAddr,
    /// The peers that the client reaches.
    pub reach: Reach,
}

/// All swarms of a tracker.
pub struct Swarms {
    options: SwarmOptions,
    members: Members,
    by_network: Held<Network>,
    by_torrent: Held<(u32, Network)>,
    rates: Rates,
    connections: ConnectionIds,
    rank: Option<Box<dyn Rank>>,
    counters: Counters,
    rng: Rng,
}

impl Swarms {
    /// No swarms. `secret` is random and known to nobody else; connection ids over UDP are made of it.
    /// `rng` chooses peers.
    pub fn new(options: SwarmOptions, secret: &[u8; 32], rng: Rng, now: Instant) -> Self {
        Self {
            rates: Rates::new(options.requests_per_minute, secret, now),
            connections: ConnectionIds::new(secret, now),
            options,
            members: Members::default(),
            by_network: Held::default(),
            by_torrent: Held::default(),
            rank: None,
            counters: Counters::default(),
            rng,
        }
    }

    /// Has `rank` prefer some peers to others, among a random few.
    #[must_use]
    pub fn with_rank(mut self, rank: Box<dyn Rank>) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Sets the info-hashes that are tracked; `None` for all. Peers of others are forgotten once they
    /// announce no more.
    pub fn allow(&mut self, info_hashes: Option<HashSet<[u8; 20]>>) {
        self.options.allowed = info_hashes;
    }

    /// What has happened, and what there is.
    pub fn counters(&self) -> Counters {
        Counters {
            torrents: self.members.torrents() as u64,
            peers: self.members.len() as u64,
            seeders: self.members.seeders,
            ..self.counters
        }
    }

    /// Answers an announce, and keeps its peer. Stopped peers, and those that wish none, are given none.
    ///
    /// # Errors
    /// [`Refusal`] if it is not answered.
    pub fn announce(
        &mut self,
        client: Client,
        request: &AnnounceRequest,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        self.admit(client.addr, now)?;
        let allowed = self.options.allowed.as_ref();
        if allowed.is_some_and(|allowed| !allowed.contains(&request.info_hash)) {
            self.counters.not_allowed += 1;
            return Err(Refusal::NotAllowed);
        }
        if let (PeerAddr::Scion(from), Some(named)) = (client.addr, request.scion)
            && !from.is_same_host(named)
        {
            self.counters.not_stored += 1;
            return Err(Refusal::ForeignHost);
        }
        self.counters.announces += 1;
        let entry = self.entry(client.addr, request, now);
        let known = self.members.find_torrent(&request.info_hash);
        if request.event == Event::Stopped {
            if let Some(torrent) = known {
                self.remove(torrent, entry.source);
            }
        } else {
            let before = known.and_then(|torrent| self.members.find(torrent, entry.source));
            let stored = self.store(request.info_hash, entry);
            self.counters.not_stored += u64::from(!stored);
            // A `completed` that is repeated, or comes of a seeder, does not count.
            let completes = before.is_some_and(|before| !before.seeder) && entry.seeder;
            if stored && completes && request.event == Event::Completed {
                self.count_download(&request.info_hash);
            }
        }
        Ok(self.answer(client, request, entry))
    }

    /// The numbers of swarms, each 0 for one without peers.
    ///
    /// # Errors
    /// [`Refusal`] if it is not answered.
    pub fn scrape(
        &mut self,
        from: PeerAddr,
        info_hashes: &[[u8; 20]],
        now: Instant,
    ) -> Result<Vec<Scraped>, Refusal> {
        self.admit(from, now)?;
        self.counters.scrapes += 1;
        let scraped = |info_hash| match self.members.find_torrent(info_hash) {
            Some(torrent) => {
                let torrent = self.members.torrent(torrent);
                Scraped {
                    complete: torrent.seeders,
                    downloaded: torrent.downloaded,
                    incomplete: torrent.len() as u32 - torrent.seeders,
                }
            }
            None => Scraped::default(),
        };
        Ok(info_hashes.iter().map(scraped).collect())
    }

    /// The connection id of a client at `from`, over UDP.
    pub fn connect(&mut self, from: PeerAddr, now: Instant) -> u64 {
        self.counters.connects += 1;
        self.connections.of(from, now)
    }

    /// Whether a connection id was given to `from` in the last minutes. If not, that is counted.
    pub fn is_connected(&mut self, id: u64, from: PeerAddr, now: Instant) -> bool {
        let valid = self.connections.is_valid(id, from, now);
        self.counters.invalid += u64::from(!valid);
        valid
    }

    /// Counts a request that cannot be read.
    pub fn on_invalid(&mut self) {
        self.counters.invalid += 1;
    }

    /// Forgets peers that announced no more. To be called at [`next_due`](Self::next_due).
    pub fn advance(&mut self, now: Instant) {
        for _ in 0..MAX_EXPIRED {
            let oldest = self.members.oldest();
            let Some((torrent, entry)) = oldest.filter(|(_, it)| it.seen + self.lifetime() <= now)
            else {
                break;
            };
            self.remove(torrent, entry.source);
            self.counters.expired += 1;
        }
    }

    /// When the next peer is to be forgotten; `None` if there are none.
    pub fn next_due(&self) -> Option<Instant> {
        let (_, entry) = self.members.oldest()?;
        Some(entry.seen + self.lifetime())
    }

    /// All swarms as they are at `now`, as bytes: at most 80 for each peer, and 24 for each torrent.
    pub fn snapshot(&self, now: Instant) -> Vec<u8> {
        snapshot::write(&self.members, now)
    }

    /// Adds the peers of a snapshot, which was taken `elapsed` ago, without those that have announced no
    /// more and those that are too many. To be called before there are others.
    ///
    /// # Errors
    /// [`SnapshotError`]; then nothing is added.
    pub fn restore(
        &mut self,
        bytes: &[u8],
        elapsed: Duration,
        now: Instant,
    ) -> Result<(), SnapshotError> {
        let (torrents, peers) = snapshot::read(bytes)?;
        let mut latest = None;
        for peer in peers {
            let age = Duration::from_secs(peer.age.into()).saturating_add(elapsed);
            if age >= self.lifetime() {
                continue;
            }
            // A clock that began later cannot say that; and the order is kept.
            let seen = now.checked_sub(age).unwrap_or(now);
            let seen = latest.map_or(seen, |before: Instant| before.max(seen));
            latest = Some(seen);
            let entry = Entry {
                source: peer.source,
                scion: peer.scion,
                seeder: peer.seeder,
                seen,
            };
            let (info_hash, downloaded) = torrents[peer.torrent];
            if self.store(info_hash, entry)
                && let Some(torrent) = self.members.find_torrent(&info_hash)
            {
                self.members.torrent_mut(torrent).downloaded = downloaded;
            }
        }
        Ok(())
    }

    fn lifetime(&self) -> Duration {
        self.options.interval * 2
    }

    fn admit(&mut self, from: PeerAddr, now: Instant) -> Result<(), Refusal> {
        self.advance(now);
        match self.rates.take(Network::of(from), now) {
            true => Ok(()),
            false => {
                self.counters.limited += 1;
                Err(Refusal::TooMany)
            }
        }
    }

    /// What an announce says of its sender.
    fn entry(&self, from: PeerAddr, request: &AnnounceRequest, now: Instant) -> Entry {
        let (source, scion) = match from {
            PeerAddr::Ip(addr) => {
                let ip = addr.ip().to_canonical();
                let scion = request.scion.filter(|scion| {
                    let same_host = scion.host.ip().to_canonical() == ip;
                    PeerAddr::Scion(*scion).is_reachable() && (same_host || !self.options.same_host)
                });
                (PeerAddr::Ip(SocketAddr::new(ip, request.port)), scion)
            }
            PeerAddr::Scion(addr) => {
                // The port is the one of its SCION address, if it names that.
                let own = request.scion;
                let port = own.map_or(request.port, |own| own.host.port());
                let host = SocketAddr::new(addr.host.ip(), port);
                let addr = ScionAddr::new(addr.isd_as, host);
                let reachable = PeerAddr::Scion(addr).is_reachable();
                (PeerAddr::Scion(addr), reachable.then_some(addr))
            }
        };
        Entry {
            source,
            scion,
            seeder: request.left == 0,
            seen: now,
        }
    }

    /// Keeps a peer, unless it is one too many, or accepts none. Returns whether it is kept.
    fn store(&mut self, info_hash: [u8; 20], entry: Entry) -> bool {
        if !entry.source.is_reachable() && entry.scion.is_none() {
            return false;
        }
        let known = self.members.find_torrent(&info_hash);
        let is_known = |torrent| self.members.find(torrent, entry.source).is_some();
        let network = Network::of(entry.source);
        if !known.is_some_and(is_known) {
            let options = &self.options;
            let room = match known {
                Some(torrent) => {
                    self.members.torrent(torrent).len() < options.peers_per_torrent
                        && self.by_torrent.count(&(torrent, network))
                            < options.peers_per_torrent_and_network
                }
                None => self.members.torrents() < options.torrents,
            };
            if !room
                || self.members.len() >= options.peers
                || self.by_network.count(&network) >= options.peers_per_network
            {
                return false;
            }
            let torrent = self.members.add_torrent(info_hash);
            self.by_network.add(network);
            self.by_torrent.add((torrent, network));
        }
        let torrent = self.members.add_torrent(info_hash);
        self.members.insert(torrent, entry);
        true
    }

    fn remove(&mut self, torrent: u32, source: PeerAddr) {
        if self.members.remove(torrent, source).is_some() {
            let network = Network::of(source);
            self.by_network.subtract(&network);
            self.by_torrent.subtract(&(torrent, network));
        }
    }

    fn count_download(&mut self, info_hash: &[u8; 20]) {
        if let Some(torrent) = self.members.find_torrent(info_hash) {
            let torrent = self.members.torrent_mut(torrent);
            torrent.downloaded = torrent.downloaded.saturating_add(1);
        }
    }

    fn answer(&mut self, client: Client, request: &AnnounceRequest, entry: Entry) -> Answer {
        let mut answer = Answer {
            interval: Some(self.options.interval),
            min_interval: Some(self.options.min_interval),
            complete: Some(0),
            incomplete: Some(0),
            external_ip: client.addr.ip().map(|addr| addr.ip().to_canonical()),
            // Over SCION that is refused.
            warning: (request.scion.is_some() && entry.scion.is_none())
                .then(|| Refusal::ForeignHost.to_string()),
            ..Answer::default()
        };
        let Some(torrent) = self.members.find_torrent(&request.info_hash) else {
            return answer;
        };
        let home = self.members.torrent(torrent);
        answer.complete = Some(home.seeders);
        answer.incomplete = Some(home.len() as u32 - home.seeders);
        if request.event != Event::Stopped {
            let want = request.num_want.unwrap_or(self.options.num_want);
            let want = want.min(self.options.max_num_want) as usize;
            answer.peers = self.peers(torrent, client.reach, entry, want);
        }
        answer
    }

    /// At most `want` peers of the kinds in `reach` for the client of `entry`.
    fn peers(&mut self, torrent: u32, reach: Reach, entry: Entry, want: usize) -> Vec<PeerAddr> {
        let lists = |kinds: &[(Kind, bool)]| -> Vec<(Kind, bool, usize)> {
            let kinds = kinds.iter().filter(|(_, reached)| *reached);
            let both = kinds.flat_map(|(kind, _)| [(*kind, false), (*kind, true)]);
            // Seeders have nothing for each other.
            let lists = both.filter(|(_, seeder)| !(entry.seeder && *seeder));
            let home = self.members.torrent(torrent);
            lists
                .map(|(kind, seeder)| (kind, seeder, home.count(kind, seeder)))
                .collect()
        };
        let ip = lists(&[(Kind::Ipv4, reach.ipv4), (Kind::Ipv6, reach.ipv6)]);
        let scion = lists(&[(Kind::Scion, reach.scion)]);
        let total = |lists: &[(Kind, bool, usize)]| lists.iter().map(|(.., count)| count).sum();
        let of_scion = want
            .div_ceil(2)
            .max(want.saturating_sub(total(&ip)))
            .min(total(&scion));
        let mut peers = self.choose(torrent, &scion, of_scion, entry);
        peers.extend(self.choose(torrent, &ip, want - of_scion, entry));
        peers
    }

    /// At most `want` peers of these lists, without the client itself.
    fn choose(
        &mut self,
        torrent: u32,
        lists: &[(Kind, bool, usize)],
        want: usize,
        entry: Entry,
    ) -> Vec<PeerAddr> {
        if want == 0 {
            return Vec::new();
        }
        let total = lists.iter().map(|(.., count)| count).sum();
        let candidates = match self.rank {
            Some(_) => want * CANDIDATES + 1,
            // One may be the client itself.
            None => want + 1,
        };
        let find = |mut at: usize| {
            let mut lists = lists.iter();
            let list = lists.find(|(.., count)| match at.checked_sub(*count) {
                Some(rest) => {
                    at = rest;
                    false
                }
                None => true,
            });
            let (kind, seeder, _) = list?;
            self.members.address(torrent, *kind, *seeder, at)
        };
        let sampled = sample(total, candidates, &mut self.rng);
        let found = sampled.into_iter().filter_map(find);
        let others = found.filter(|(other, _)| other.source != entry.source);
        let mut peers: Vec<_> = others.map(|(_, addr)| addr).collect();
        if let Some(rank) = &self.rank {
            let client = |peer: &PeerAddr| match peer {
                PeerAddr::Scion(_) => entry.scion.map_or(entry.source, PeerAddr::Scion),
                PeerAddr::Ip(_) => entry.source,
            };
            peers.sort_by_cached_key(|peer| Reverse(rank.rank(client(peer), *peer)));
        }
        peers.truncate(want);
        peers
    }
}

impl std::fmt::Debug for Swarms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Swarms")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
