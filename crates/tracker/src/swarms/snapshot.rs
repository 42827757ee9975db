//! All swarms as bytes, so that a tracker that is restarted knows them.
//!
//! The bytes are [`MAGIC`]; the number of torrents, and of each its info-hash and its downloads; the number
//! of peers, and of each, those that have not announced for the longest time first: the number of its
//! torrent, flags, its age in seconds, its source and, if flagged, its SCION address, both with a length
//! byte in front; and the SHA-256 of all that. Numbers are of four bytes, big-endian.

use std::collections::HashMap;
use std::time::Instant;

use hawser_address::{PeerAddr, ScionAddr, ip_from_compact};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::members::{Entry, Members};
use crate::message::entries;

const MAGIC: &[u8; 16] = b"hawser swarms 1\n";
const SUM: usize = 32;
/// Flags of a peer.
const SEEDER: u8 = 1;
const SCION: u8 = 2;
/// Fewest bytes of a torrent and of a peer.
const TORRENT: usize = 24;
const PEER: usize = 4 + 1 + 4 + 7;

/// Why bytes are not a snapshot of swarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// They begin like something else.
    #[error("these are not swarms of a tracker, or of another version")]
    Magic,
    /// They were changed, or cut short.
    #[error("the swarms are damaged: their checksum differs")]
    Checksum,
    /// The checksum is right, but not what it is about.
    #[error("the swarms are malformed")]
    Malformed,
}

/// All peers as they are at `now`: at most 80 bytes for each, and 24 for each torrent.
pub(super) fn write(members: &Members, now: Instant) -> Vec<u8> {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut torrents = Vec::new();
    let mut peers = Vec::new();
    let mut count: u32 = 0;
    for (torrent, entry) in members.iter() {
        // At most as many as there are peers, of which there are fewer than 2^32.
        let next = numbers.len() as u32;
        let number = *numbers.entry(torrent).or_insert_with(|| {
            let home = members.torrent(torrent);
            torrents.extend(home.info_hash);
            torrents.extend(home.downloaded.to_be_bytes());
            next
        });
        write_peer(number, entry, now, &mut peers);
        count += 1;
    }
    let mut out = MAGIC.to_vec();
    out.extend((numbers.len() as u32).to_be_bytes());
    out.extend(torrents);
    out.extend(count.to_be_bytes());
    out.extend(peers);
    let sum = Sha256::digest(&out);
    out.extend(sum);
    out
}

fn write_peer(torrent: u32, entry: Entry, now: Instant, out: &mut Vec<u8>) {
    // Over SCION the source is the SCION address.
    let scion = entry.scion.filter(|_| entry.source.ip().is_some());
    let mut flags = 0;
    if entry.seeder {
        flags |= SEEDER;
    }
    if scion.is_some() {
        flags |= SCION;
    }
    let age = now.saturating_duration_since(entry.seen).as_secs();
    out.extend(torrent.to_be_bytes());
    out.push(flags);
    out.extend(u32::try_from(age).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(entries::write(
        [Some(entry.source), scion.map(PeerAddr::Scion)]
            .into_iter()
            .flatten(),
    ));
}

/// A peer of a snapshot.
#[derive(Debug)]
pub(super) struct Peer {
    /// An index of the torrents.
    pub torrent: usize,
    pub seeder: bool,
    /// In seconds.
    pub age: u32,
    pub source: PeerAddr,
    pub scion: Option<ScionAddr>,
}

/// Info-hashes and downloads.
type Torrents = Vec<([u8; 20], u32)>;

/// The torrents and peers of a snapshot.
pub(super) fn read(bytes: &[u8]) -> Result<(Torrents, Vec<Peer>), SnapshotError> {
    let (content, sum) = bytes
        .split_last_chunk::<SUM>()
        .ok_or(SnapshotError::Magic)?;
    let body = content.strip_prefix(MAGIC).ok_or(SnapshotError::Magic)?;
    if Sha256::digest(content)[..] != sum[..] {
        return Err(SnapshotError::Checksum);
    }
    let mut reader = Reader(body);
    reader.torrents().ok_or(SnapshotError::Malformed)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn torrents(&mut self) -> Option<(Torrents, Vec<Peer>)> {
        let count = self.count(TORRENT)?;
        let mut torrents = Vec::with_capacity(count);
        for _ in 0..count {
            torrents.push((self.take()?, self.number()?));
        }
        let count = self.count(PEER)?;
        let mut peers = Vec::with_capacity(count);
        for _ in 0..count {
            peers.push(self.peer().filter(|peer| peer.torrent < torrents.len())?);
        }
        self.0.is_empty().then_some((torrents, peers))
    }

    fn peer(&mut self) -> Option<Peer> {
        let torrent = self.number()? as usize;
        let [flags] = self.take()?;
        let age = self.number()?;
        let source = self.address()?;
        let scion = match source {
            PeerAddr::Scion(addr) => Some(addr),
            PeerAddr::Ip(_) if flags & SCION != 0 => Some(self.address()?.scion()?),
            PeerAddr::Ip(_) => None,
        };
        Some(Peer {
            torrent,
            seeder: flags & SEEDER != 0,
            age,
            source,
            scion: scion.filter(|addr| PeerAddr::Scion(*addr).is_reachable()),
        })
    }

    fn address(&mut self) -> Option<PeerAddr> {
        let [length] = self.take()?;
        let (compact, after) = self.0.split_at_checked(length.into())?;
        self.0 = after;
        let scion = ScionAddr::from_compact(compact).map(PeerAddr::Scion);
        scion.or_else(|| ip_from_compact(compact).map(PeerAddr::Ip))
    }

    /// A number of things of at least `size` bytes, for which there are enough bytes.
    fn count(&mut self, size: usize) -> Option<usize> {
        let count = self.number()? as usize;
        (count.checked_mul(size)? <= self.0.len()).then_some(count)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, after) = self.0.split_first_chunk::<N>()?;
        self.0 = after;
        Some(*bytes)
    }
}
