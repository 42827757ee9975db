//! The segments of a whole network, signed: made where all keys are, and handed to its ASes.
//!
//! Services that beacon need none of this. Without beaconing between machines, whoever made the
//! keys of a network makes its segments too, as a [`Publication`]; the control service of each AS
//! verifies them by the AS's own TRCs before it answers with them ([`Control::bind_published`]).
//!
//! [`Control::bind_published`]: crate::Control::bind_published

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_path::Discovery;
use hawser_proto::Message;
use hawser_proto::control_plane::PathSegment;
use hawser_topology::{AsDir, IsdAsn, Network, as_folder};
use hawser_trust::{Chain, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::beacons::{Beacons, CachedSegments};
use crate::cache::CachedSegment;
use crate::error::ControlError;
use crate::graph::{Along, Graph};
use crate::pki::{Pki, PkiError};
use crate::plane::Plane;
use crate::segment::{EntrySource, MAX_LIFETIME, MIN_LIFETIME, Stamp};

/// The format that this version writes and reads.
const FORMAT: u32 = 1;

/// The segments of a network, with the certificates that verify them.
#[derive(Serialize, Deserialize)]
pub struct Publication {
    format: u32,
    /// Time of creation, in Unix seconds.
    made: u64,
    /// Time of expiry, in Unix seconds.
    expiry: u64,
    network: Network,
    segments: Vec<Published>,
    chains: Vec<PublishedChain>,
}

#[derive(Serialize, Deserialize)]
struct Published {
    along: SegmentKind,
    /// The encoded `PathSegment`.
    message: Bytes,
}

/// The kind of a segment.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SegmentKind {
    Core,
    Down,
}

#[derive(Serialize, Deserialize)]
struct PublishedChain {
    r#as: Bytes,
    ca: Bytes,
}

/// Bytes that JSON has in base64.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = BASE64_STANDARD.decode(text);
        bytes.map(Self).map_err(serde::de::Error::custom)
    }
}

impl Publication {
    /// Makes the segments of `network`, valid for `lifetime` (2 s to 24 h) from `now` (Unix
    /// seconds) on, but for 23 h at most: they are valid an hour before `now` too, as the clocks of other
    /// machines may be behind. The folders of its ASes, with keys, certificates and TRCs, are in `folder`,
    /// named by [`as_folder`]. `services` are those that an AS announces.
    ///
    /// # Errors
    /// When a key or certificate is missing or not valid, or the lifetime is out of bounds.
    pub fn make(
        network: Network,
        folder: &Path,
        services: impl Fn(IsdAsn) -> Discovery,
        lifetime: Duration,
        now: u64,
    ) -> Result<Self, ControlError> {
        if !(MIN_LIFETIME..=MAX_LIFETIME).contains(&lifetime) {
            return Err(ControlError::Lifetime(lifetime));
        }
        let mut sources = Vec::new();
        for r#as in &network.ases {
            sources.push(EntrySource {
                hop_key: AsDir::new(folder.join(as_folder(r#as.isd_as))).hop_key()?,
                services: services(r#as.isd_as),
            });
        }
        let stamp = Stamp::for_other_clocks(now, lifetime);
        let mut segments = Vec::new();
        let mut chains = Vec::new();
        if let Some(first) = network.ases.first() {
            let unsigned = |reason: PkiError| ControlError::Unsigned(reason.to_string());
            let certs = folder.join(as_folder(first.isd_as)).join("certs");
            let mut pki = Pki::new(folder, Store::load(&certs)?);
            let mut beacons = Beacons::new(Graph::new(network.clone()), sources, stamp, usize::MAX);
            for r#as in &network.ases {
                let chain = pki.chain(r#as.isd_as).map_err(unsigned)?;
                chains.extend(chain.map(|chain| PublishedChain {
                    r#as: Bytes(chain.r#as().to_der().to_vec()),
                    ca: Bytes(chain.ca().to_der().to_vec()),
                }));
            }
            for (along, found) in all(&mut beacons) {
                // Each takes some signatures.
                let signed = hawser_parallel::map(&found, |segment| {
                    let message = segment.signed_by(&pki).map_err(unsigned)?;
                    Ok::<_, ControlError>(Bytes(message.encode_to_vec()))
                });
                for message in signed {
                    let message = message?;
                    segments.push(Published { along, message });
                }
            }
        }
        Ok(Self {
            format: FORMAT,
            made: stamp.made,
            expiry: stamp.expiry,
            network,
            segments,
            chains,
        })
    }

    /// Whether a newer one should be made at `now` (Unix seconds): half of the lifetime is over.
    pub fn is_due(&self, now: u64) -> bool {
        now < self.made || now >= self.made + (self.expiry - self.made) / 2
    }

    /// When the segments expire, in Unix seconds.
    pub fn expiry(&self) -> u64 {
        self.expiry
    }

    /// The network, without addresses and keys.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network's segments as several files, each a publication of its own, compressed by gzip,
    /// of at most `limit` bytes (at least 64 KiB) as far as the network itself, which is in the first,
    /// leaves room. A folder with all of them is read as the whole.
    pub fn to_parts(&self, limit: usize) -> Vec<Vec<u8>> {
        parts::split(self, limit)
    }

    /// How many segments it has.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether it has no segments.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The file: JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Plain data with text keys can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a file that [`Self::to_json`] made, or the first of [`Self::to_parts`], of at most 64 MiB
    /// without compression. The segments are not verified yet.
    ///
    /// # Errors
    /// When it is not such a file, or of a newer format.
    pub fn from_json(bytes: &[u8]) -> Result<Self, PublicationError> {
        let read: Self = parse(&parts::decompressed(bytes)?)?;
        match read.made < read.expiry {
            true => Ok(read),
            false => Err(PublicationError::ended_before()),
        }
    }

    /// The control plane of the AS whose folder is `dir`, with the segments that the AS's TRCs
    /// verify at `now` (Unix seconds).
    pub(crate) fn plane(self, dir: &AsDir, now: u64) -> Result<Plane, ControlError> {
        let topology = dir.topology()?;
        let graph = Graph::new(self.network);
        let local = graph.find(topology.isd_as);
        let local = local.ok_or(ControlError::NotInNetwork(topology.isd_as))?;
        let mut store = Store::load(&dir.path().join("certs"))?;
        let mut chains = BTreeMap::new();
        for PublishedChain { r#as, ca } in &self.chains {
            match Chain::from_der(&r#as.0, &ca.0) {
                Ok(chain) if store.add_chain(chain.clone()) => {
                    chains.insert(chain.isd_as(), chain);
                }
                Ok(chain) => refuse(format_args!("the chain of {} has no TRC", chain.isd_as())),
                Err(reason) => refuse(reason),
            }
        }
        let mut kept: HashMap<(usize, usize, Along), CachedSegments> = HashMap::new();
        for Published { along, message } in &self.segments {
            match verified(&store, &message.0, now) {
                Ok(segment) => {
                    let ends = [segment.segment.first(), segment.segment.last()];
                    if let [Some(from), Some(to)] = ends.map(|end| graph.find(end)) {
                        let along = match along {
                            SegmentKind::Core => Along::Core,
                            SegmentKind::Down => Along::Children,
                        };
                        let list = kept.entry((from, to, along)).or_default();
                        list.push(Arc::new(segment));
                    }
                }
                Err(reason) => refuse(reason),
            }
        }
        let lifetime = Duration::from_secs(self.expiry.saturating_sub(self.made));
        let stamp = Stamp::new(self.made, lifetime);
        let beacons = Beacons::published(graph, kept, stamp);
        let mut plane = Plane::with_beacons(beacons, topology, local, lifetime);
        plane.pki = Some(Pki::published(store, chains));
        Ok(plane)
    }
}

/// Reads JSON of a format that this version knows.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PublicationError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let invalid = |error: serde_json::Error| PublicationError::Invalid(error.to_string());
    let Format { format } = serde_json::from_slice(bytes).map_err(invalid)?;
    match format > FORMAT {
        true => Err(PublicationError::Newer(format)),
        false => serde_json::from_slice(bytes).map_err(invalid),
    }
}

/// All segments of a network: from core ASes to all ASes below, and among core ASes.
fn all(beacons: &mut Beacons) -> Vec<(SegmentKind, CachedSegments)> {
    let core = beacons.graph.core_ases(None);
    let mut found = vec![(
        SegmentKind::Core,
        beacons.between(&core, &core, Along::Core),
    )];
    for at in 0..beacons.graph.network.ases.len() {
        found.push((SegmentKind::Down, beacons.below_core(at, &core)));
    }
    found
}

fn verified(store: &Store, message: &[u8], now: u64) -> Result<CachedSegment, String> {
    let message = PathSegment::decode(message).map_err(|e| e.to_string())?;
    let checked = store.verify_segment(&message, now);
    checked.map_err(|error| error.to_string())?;
    CachedSegment::signed(message).map_err(|error| error.to_string())
}

fn refuse(reason: impl fmt::Display) {
    tracing::warn!("a published segment or certificate is left out: {reason}");
}

/// Shows how much it has: segments are long.
impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("made", &self.made)
            .field("expiry", &self.expiry)
            .field("ases", &self.network.ases.len())
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

/// The reason why a file is not a publication.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicationError {
    /// It is not valid.
    #[error("not a file of published segments: {0}")]
    Invalid(String),
    /// It is of a newer format.
    #[error("published segments of format {0}, of a newer hawser: this one reads {FORMAT}")]
    Newer(u32),
}

impl PublicationError {
    fn ended_before() -> Self {
        Self::Invalid("it ends before it begins".to_owned())
    }
}

/// Reads the control plane of the AS whose folder is `dir` from the publication in `path`, a file or
/// a folder of its parts.
pub(crate) fn load(dir: &AsDir, path: &Path, now: u64) -> Result<Plane, ControlError> {
    parts::read(path)?.plane(dir, now)
}

mod parts;
#[cfg(test)]
mod tests;
