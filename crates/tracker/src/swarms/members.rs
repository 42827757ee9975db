//! The peers of all torrents, in the order in which they announced last.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use hawser_address::{PeerAddr, ScionAddr};

/// No member.
const NONE: u32 = u32::MAX;

/// What a peer has announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its address and its port for peers: what it is known by.
    pub source: PeerAddr,
    /// Its SCION address, also if that is its source.
    pub scion: Option<ScionAddr>,
    pub seeder: bool,
    pub seen: Instant,
}

/// A list of a torrent's peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ipv4 = 0,
    Ipv6 = 1,
    Scion = 2,
}

/// A peer, with its places in the lists.
#[derive(Debug)]
struct Member {
    torrent: u32,
    entry: Entry,
    ip_at: u32,
    scion_at: u32,
    /// The neighbors in the order of announces; of a free place, the next free one.
    before: u32,
    after: u32,
}

/// A torrent with its peers.
#[derive(Debug, Default)]
pub(super) struct Torrent {
    pub info_hash: [u8; 20],
    members: HashMap<PeerAddr, u32>,
    /// By kind; leechers and seeders apart.
    lists: [[Vec<u32>; 2]; 3],
    pub seeders: u32,
    /// How many peers have reported `completed` while the torrent had peers.
    pub downloaded: u32,
}

impl Torrent {
    /// Number of peers.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// How many peers of this kind there are.
    pub fn count(&self, kind: Kind, seeder: bool) -> usize {
        self.lists[kind as usize][usize::from(seeder)].len()
    }
}

/// All torrents and their peers.
#[derive(Debug)]
pub(super) struct Members {
    members: Vec<Member>,
    torrents: Vec<Torrent>,
    by_hash: HashMap<[u8; 20], u32>,
    free_members: Vec<u32>,
    free_torrents: Vec<u32>,
    oldest: u32,
    newest: u32,
    pub seeders: u64,
}

impl Default for Members {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            torrents: Vec::new(),
            by_hash: HashMap::new(),
            free_members: Vec::new(),
            free_torrents: Vec::new(),
            oldest: NONE,
            newest: NONE,
            seeders: 0,
        }
    }
}

impl Members {
    /// Number of torrents; each has a peer.
    pub fn torrents(&self) -> usize {
        self.by_hash.len()
    }

    /// Number of peers.
    pub fn len(&self) -> usize {
        self.members.len() - self.free_members.len()
    }

    /// The number of a torrent that has peers.
    pub fn find_torrent(&self, info_hash: &[u8; 20]) -> Option<u32> {
        self.by_hash.get(info_hash).copied()
    }

    /// A torrent by its number.
    pub fn torrent(&self, torrent: u32) -> &Torrent {
        &self.torrents[torrent as usize]
    }

    /// The same, to be changed.
    pub fn torrent_mut(&mut self, torrent: u32) -> &mut Torrent {
        &mut self.torrents[torrent as usize]
    }

    /// What a peer of a torrent has announced.
    pub fn find(&self, torrent: u32, source: PeerAddr) -> Option<Entry> {
        let at = self.torrents[torrent as usize].members.get(&source)?;
        Some(self.members[*at as usize].entry)
    }

    /// The number of a torrent, which is added if there is none. A peer must be added at once.
    pub fn add_torrent(&mut self, info_hash: [u8; 20]) -> u32 {
        if let Some(found) = self.find_torrent(&info_hash) {
            return found;
        }
        let new = Torrent {
            info_hash,
            ..Torrent::default()
        };
        let number = match self.free_torrents.pop() {
            Some(number) => {
                self.torrents[number as usize] = new;
                number
            }
            None => {
                self.torrents.push(new);
                (self.torrents.len() - 1) as u32
            }
        };
        self.by_hash.insert(info_hash, number);
        number
    }

    /// Adds a peer, in place of what is known of it.
    pub fn insert(&mut self, torrent: u32, entry: Entry) {
        self.take(torrent, entry.source);
        let member = Member {
            torrent,
            entry,
            ip_at: NONE,
            scion_at: NONE,
            before: self.newest,
            after: NONE,
        };
        let at = match self.free_members.pop() {
            Some(at) => {
                self.members[at as usize] = member;
                at
            }
            None => {
                self.members.push(member);
                (self.members.len() - 1) as u32
            }
        };
        match self.newest {
            NONE => self.oldest = at,
            newest => self.members[newest as usize].after = at,
        }
        self.newest = at;
        let home = &mut self.torrents[torrent as usize];
        home.members.insert(entry.source, at);
        home.seeders += u32::from(entry.seeder);
        self.seeders += u64::from(entry.seeder);
        let member = &mut self.members[at as usize];
        if let Some(kind) = ip_kind(entry.source) {
            let list = &mut home.lists[kind as usize][usize::from(entry.seeder)];
            member.ip_at = list.len() as u32;
            list.push(at);
        }
        if entry.scion.is_some() {
            let list = &mut home.lists[Kind::Scion as usize][usize::from(entry.seeder)];
            member.scion_at = list.len() as u32;
            list.push(at);
        }
    }

    /// Removes a peer, and its torrent if it was the last one. Returns what was known of it.
    pub fn remove(&mut self, torrent: u32, source: PeerAddr) -> Option<Entry> {
        let entry = self.take(torrent, source)?;
        let home = &mut self.torrents[torrent as usize];
        if home.members.is_empty() {
            self.by_hash.remove(&home.info_hash);
            *home = Torrent::default();
            self.free_torrents.push(torrent);
        }
        Some(entry)
    }

    fn take(&mut self, torrent: u32, source: PeerAddr) -> Option<Entry> {
        let home = &mut self.torrents[torrent as usize];
        let at = home.members.remove(&source)?;
        let member = &self.members[at as usize];
        let (entry, before, after) = (member.entry, member.before, member.after);
        let (ip_at, scion_at) = (member.ip_at, member.scion_at);
        match before {
            NONE => self.oldest = after,
            before => self.members[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.members[after as usize].before = before,
        }
        if let Some(kind) = ip_kind(source) {
            let list = &mut home.lists[kind as usize][usize::from(entry.seeder)];
            list.swap_remove(ip_at as usize);
            if let Some(moved) = list.get(ip_at as usize) {
                self.members[*moved as usize].ip_at = ip_at;
            }
        }
        if entry.scion.is_some() {
            let list = &mut home.lists[Kind::Scion as usize][usize::from(entry.seeder)];
            list.swap_remove(scion_at as usize);
            if let Some(moved) = list.get(scion_at as usize) {
                self.members[*moved as usize].scion_at = scion_at;
            }
        }
        home.seeders -= u32::from(entry.seeder);
        self.seeders -= u64::from(entry.seeder);
        self.free_members.push(at);
        Some(entry)
    }

    /// The peer that has not announced for the longest time, and its torrent.
    pub fn oldest(&self) -> Option<(u32, Entry)> {
        let member = self.members.get(self.oldest as usize)?;
        Some((member.torrent, member.entry))
    }

    /// The address of kind `kind` of a peer of a torrent: number `at` of the leechers or seeders that have
    /// one.
    pub fn address(
        &self,
        torrent: u32,
        kind: Kind,
        seeder: bool,
        at: usize,
    ) -> Option<(Entry, PeerAddr)> {
        let list = &self.torrents[torrent as usize].lists[kind as usize][usize::from(seeder)];
        let entry = self.members[*list.get(at)? as usize].entry;
        let address = match kind {
            Kind::Scion => PeerAddr::Scion(entry.scion?),
            Kind::Ipv4 | Kind::Ipv6 => entry.source,
        };
        Some((entry, address))
    }

    /// All peers with their torrents, those that have not announced for the longest time first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Entry)> {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let member = self.members.get(at as usize)?;
            at = member.after;
            Some((member.torrent, member.entry))
        })
    }
}

/// The list of IP peers that a peer is in, if it can be reached over IP.
fn ip_kind(source: PeerAddr) -> Option<Kind> {
    let addr = source.ip().filter(|_| source.is_reachable())?;
    match addr.ip() {
        IpAddr::V4(_) => Some(Kind::Ipv4),
        IpAddr::V6(_) => Some(Kind::Ipv6),
    }
}
