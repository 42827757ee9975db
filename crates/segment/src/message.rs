//! Segments read from messages.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_path::{Discovery, Geo, LinkType};
use scion_protobuf::buffa::{DecodeError, EnumValue, Message};
use scion_protobuf::proto::control_plane::v1::{
    ASEntry, ASEntrySignedBody, HopField, LinkType as LinkTypeMessage, PathSegment, PeerEntry,
    SegmentInformation, StaticInfoExtension,
};
use scion_protobuf::proto::crypto::v1::HeaderAndBodyInternal;
use sciparse::identifier::isd_asn::IsdAsn;
use sha2::{Digest, Sha256};

use crate::discovery::discovery;
use crate::segment::{Entry, Hop, Peer, Segment, StaticInfo};

/// The most hop fields a segment of a path can have (SCION data plane, path meta header: `SegLen`
/// has 6 bits).
const MAX_ENTRIES: usize = 63;

/// Why a message is not a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The segment information cannot be decoded.
    #[error("a segment whose information cannot be read: {0}")]
    Info(String),
    /// The timestamp does not fit a path.
    #[error("a segment made at {0}: paths can carry Unix seconds from 0 to 4294967295")]
    Timestamp(i64),
    /// The segment ID does not fit a path.
    #[error("a segment with ID {0}: IDs go from 0 to 65535")]
    Id(u32),
    /// It has no AS.
    #[error("a segment without AS entries")]
    Empty,
    /// It has more ASes than a path can cross.
    #[error("a segment of {0} AS entries: a path crosses at most {MAX_ENTRIES} with one segment")]
    TooLong(usize),
    /// An AS entry is wrong.
    #[error("a segment whose AS entry {at} has {reason}")]
    Entry {
        /// Its place, from 0.
        at: usize,
        /// What is wrong.
        reason: EntryError,
    },
}

/// What is wrong with an AS entry of a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// A part of it cannot be decoded.
    #[error("a {part} that cannot be read: {reason}")]
    Unreadable {
        /// The part.
        part: &'static str,
        /// What the decoder said.
        reason: String,
    },
    /// A part of it is missing.
    #[error("no {0}")]
    Missing(&'static str),
    /// An AS is a wildcard.
    #[error("{1} as its {0}, which is not one AS")]
    Wildcard(&'static str, IsdAsn),
    /// It does not name the AS that comes after it.
    #[error("{named} as the next AS, where {follows} follows")]
    Next {
        /// The AS it names; `0-0` says that it is the last.
        named: IsdAsn,
        /// The AS that follows; `0-0` for the last.
        follows: IsdAsn,
    },
    /// An interface where none is allowed, or none where one is required.
    #[error("{0} {1}: an interface has 1 to 65535, the first ingress and the last egress are 0")]
    Interface(&'static str, u64),
    /// A peering hop field leaves the AS by another interface than the beacon.
    #[error("a peering hop field with egress {0}, where the beacon leaves by {1}")]
    PeerEgress(u16, u16),
    /// The life of a hop field is too long.
    #[error("an expiration of {0} units: a hop field has at most 255")]
    ExpTime(u32),
    /// A MAC does not have 6 bytes.
    #[error("a MAC of {0} bytes: it has 6")]
    Mac(usize),
}

impl Segment {
    /// Reads a segment as a control service sends it. Every field is checked.
    ///
    /// Signatures are not verified, and static information is believed as announced, but left out
    /// where its interface, kind of link, place on Earth or address is not one.
    ///
    /// # Errors
    /// When the message is not a segment, as [`SegmentError`] says.
    pub fn from_message(message: &PathSegment) -> Result<Self, SegmentError> {
        let info = SegmentInformation::decode_from_slice(&message.segment_info)
            .map_err(|error| SegmentError::Info(error.to_string()))?;
        let timestamp =
            u32::try_from(info.timestamp).map_err(|_| SegmentError::Timestamp(info.timestamp))?;
        let id = u16::try_from(info.segment_id).map_err(|_| SegmentError::Id(info.segment_id))?;
        let count = message.as_entries.len();
        match count {
            0 => return Err(SegmentError::Empty),
            1..=MAX_ENTRIES => {}
            _ => return Err(SegmentError::TooLong(count)),
        }
        let at = |at| move |reason| SegmentError::Entry { at, reason };
        let mut bodies = Vec::with_capacity(count);
        for (place, entry) in message.as_entries.iter().enumerate() {
            bodies.push(body(entry).map_err(at(place))?);
        }
        let mut entries = Vec::with_capacity(count);
        for (place, (body, services)) in bodies.iter().enumerate() {
            let next = bodies.get(place + 1).map(|(next, _)| next.isd_as);
            let mut entry = entry(body, place == 0, next).map_err(at(place))?;
            entry.discovery = services.clone();
            entries.push(entry);
        }
        Ok(Self {
            timestamp,
            hash: hash(&entries),
            betas: betas(id, &entries),
            entries,
        })
    }
}

/// The body of an entry, and the services it announces.
fn body(entry: &ASEntry) -> Result<(ASEntrySignedBody, Discovery), EntryError> {
    let unreadable = |part| {
        move |error: DecodeError| EntryError::Unreadable {
            part,
            reason: error.to_string(),
        }
    };
    let signed = entry.signed.as_option();
    let signed = signed.ok_or(EntryError::Missing("signed part"))?;
    let inner = HeaderAndBodyInternal::decode_from_slice(&signed.header_and_body)
        .map_err(unreadable("signed part"))?;
    let body = ASEntrySignedBody::decode_from_slice(&inner.body).map_err(unreadable("body"))?;
    let services = discovery(&inner.body).map_err(unreadable("discovery extension"))?;
    Ok((body, services))
}

/// `next` is the ISD-AS of the entry that follows, if one does.
fn entry(body: &ASEntrySignedBody, first: bool, next: Option<u64>) -> Result<Entry, EntryError> {
    let isd_as = one_as("AS", body.isd_as)?;
    let (named, follows) = (body.next_isd_as, next.unwrap_or(0));
    if named != follows {
        return Err(EntryError::Next {
            named: IsdAsn::from_u64(named),
            follows: IsdAsn::from_u64(follows),
        });
    }
    let hop_entry = body.hop_entry.as_option();
    let hop_entry = hop_entry.ok_or(EntryError::Missing("hop entry"))?;
    let hop = hop(hop_entry.hop_field.as_option(), !first, next.is_some())?;
    let info = body.extensions.as_option();
    let info = info.and_then(|extensions| extensions.static_info.as_option());
    Ok(Entry {
        isd_as,
        mtu: mtu(body.mtu),
        ingress_mtu: mtu(hop_entry.ingress_mtu),
        peers: body
            .peer_entries
            .iter()
            .map(|entry| peer(entry, &hop))
            .collect::<Result<_, _>>()?,
        hop,
        info: info.map(static_info),
        discovery: Discovery::default(),
    })
}

fn one_as(part: &'static str, isd_as: u64) -> Result<IsdAsn, EntryError> {
    let isd_as = IsdAsn::from_u64(isd_as);
    if isd_as.is_wildcard() {
        return Err(EntryError::Wildcard(part, isd_as));
    }
    Ok(isd_as)
}

/// Larger packets than 65535 bytes do not exist in SCION.
fn mtu(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

fn interface(part: &'static str, id: u64, there: bool) -> Result<u16, EntryError> {
    match u16::try_from(id) {
        Ok(id) if (id != 0) == there => Ok(id),
        _ => Err(EntryError::Interface(part, id)),
    }
}

/// `ingress` and `egress` say whether there is one.
fn hop(field: Option<&HopField>, ingress: bool, egress: bool) -> Result<Hop, EntryError> {
    let field = field.ok_or(EntryError::Missing("hop field"))?;
    Ok(Hop {
        ingress: interface("ingress", field.ingress, ingress)?,
        egress: interface("egress", field.egress, egress)?,
        exp_time: u8::try_from(field.exp_time).map_err(|_| EntryError::ExpTime(field.exp_time))?,
        mac: field
            .mac
            .as_slice()
            .try_into()
            .map_err(|_| EntryError::Mac(field.mac.len()))?,
    })
}

fn peer(entry: &PeerEntry, main: &Hop) -> Result<Peer, EntryError> {
    let hop = hop(entry.hop_field.as_option(), true, main.egress != 0)?;
    if hop.egress != main.egress {
        return Err(EntryError::PeerEgress(hop.egress, main.egress));
    }
    Ok(Peer {
        isd_as: one_as("peer", entry.peer_isd_as)?,
        interface: interface("peer interface", entry.peer_interface, true)?,
        mtu: mtu(entry.peer_mtu),
        hop,
    })
}

fn static_info(message: &StaticInfoExtension) -> StaticInfo {
    let micros = |micros: &u32| Some(Duration::from_micros((*micros).into()));
    let (latency, bandwidth) = (&message.latency, &message.bandwidth);
    StaticInfo {
        latency_intra: by_interface(&latency.intra, micros),
        latency_inter: by_interface(&latency.inter, micros),
        bandwidth_intra: by_interface(&bandwidth.intra, |&kbit| Some(kbit)),
        bandwidth_inter: by_interface(&bandwidth.inter, |&kbit| Some(kbit)),
        geo: by_interface(&message.geo, |geo| {
            let on_earth = geo.latitude.abs() <= 90.0 && geo.longitude.abs() <= 180.0;
            on_earth.then(|| Geo {
                latitude: geo.latitude,
                longitude: geo.longitude,
                address: geo.address.clone(),
            })
        }),
        link_type: by_interface(&message.link_type, link_type),
        internal_hops: by_interface(&message.internal_hops, |&hops| Some(hops)),
        note: message.note.clone(),
    }
}

/// The values that `convert` knows of keys that are interfaces.
fn by_interface<T, U>(
    values: &BTreeMap<u64, T>,
    convert: impl Fn(&T) -> Option<U>,
) -> Vec<(u16, U)> {
    values
        .iter()
        .filter_map(|(&id, value)| match u16::try_from(id) {
            Ok(id) if id != 0 => Some((id, convert(value)?)),
            _ => None,
        })
        .collect()
}

fn link_type(kind: &EnumValue<LinkTypeMessage>) -> Option<LinkType> {
    match kind.as_known()? {
        LinkTypeMessage::Direct => Some(LinkType::Direct),
        LinkTypeMessage::MultiHop => Some(LinkType::MultiHop),
        LinkTypeMessage::OpenNet => Some(LinkType::OpenNet),
        _ => None,
    }
}

fn hash(entries: &[Entry]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for entry in entries {
        hash.update(entry.isd_as.to_be_bytes());
        hash.update(entry.hop.ingress.to_be_bytes());
        hash.update(entry.hop.egress.to_be_bytes());
    }
    hash.finalize().into()
}

/// Each AS folds the first two bytes of its MAC into the accumulator for the next (SCION data
/// plane, hop field MAC, chaining).
fn betas(id: u16, entries: &[Entry]) -> Vec<u16> {
    let mut beta = id;
    let mut betas = vec![beta];
    for entry in entries {
        beta ^= u16::from_be_bytes([entry.hop.mac[0], entry.hop.mac[1]]);
        betas.push(beta);
    }
    betas
}

#[cfg(test)]
mod tests;
