//! Reading segments from messages.

use hawser_address::IsdAsn;
use hawser_packet::path::{HopField, InfoField};
use hawser_path::Discovery;
use hawser_proto::control_plane::{
    ASEntry, ASEntrySignedBody, DiscoveryExtension, HopField as HopFieldMessage, PathSegment,
    PeerEntry, SegmentInformation,
};
use hawser_proto::crypto::HeaderAndBodyInternal;
use hawser_proto::{DecodeError, Message};
use sha2::{Digest, Sha256};

use crate::segment::{Entry, Peer, Segment};

/// Maximum number of hop fields of a segment (SCION data plane, path meta header: `SegLen` has 6
/// bits).
const MAX_ENTRIES: usize = 63;

/// The reason why a message is not a valid segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a segment {0}")]
pub struct SegmentError(String);

impl Segment {
    /// Reads a segment from a message of a control service, and checks every field.
    ///
    /// Does not verify signatures. Static information and addresses of services are taken without
    /// checks, and left out if they cannot be read.
    ///
    /// # Errors
    /// When the message is not a valid segment.
    pub fn from_message(message: &PathSegment) -> Result<Self, SegmentError> {
        Self::read(message).map_err(SegmentError)
    }

    fn read(message: &PathSegment) -> Result<Self, String> {
        let info = SegmentInformation::decode(message.segment_info.as_slice())
            .map_err(|error| format!("whose information cannot be read: {error}"))?;
        let timestamp = u32::try_from(info.timestamp).map_err(|_| {
            let made = info.timestamp;
            format!("made at {made}: paths can carry Unix seconds from 0 to 4294967295")
        })?;
        let segment_id = u16::try_from(info.segment_id)
            .map_err(|_| format!("with ID {}: IDs are 0 to 65535", info.segment_id))?;
        match message.as_entries.len() {
            0 => return Err("without AS entries".to_owned()),
            1..=MAX_ENTRIES => {}
            count => {
                return Err(format!(
                    "of {count} AS entries: a path crosses at most {MAX_ENTRIES} with one segment"
                ));
            }
        }
        let at = |at| move |reason| format!("whose AS entry {at} has {reason}");
        let bodies = message.as_entries.iter().enumerate();
        let bodies = bodies.map(|(place, entry)| body(entry).map_err(at(place)));
        let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
        let entries = bodies.iter().enumerate().map(|(place, body)| {
            let next = bodies.get(place + 1).map(|next| next.isd_as);
            entry(body, place == 0, next).map_err(at(place))
        });
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            info: InfoField {
                cons_dir: true,
                peer: false,
                segment_id,
                timestamp,
            },
            hash: hash(&entries),
            betas: betas(segment_id, &entries),
            entries,
        })
    }
}

/// The body of an entry.
fn body(entry: &ASEntry) -> Result<ASEntrySignedBody, String> {
    let unreadable =
        |part| move |error: DecodeError| format!("a {part} that cannot be read: {error}");
    let signed = entry.signed.as_ref().ok_or("no signed part")?;
    let inner = HeaderAndBodyInternal::decode(signed.header_and_body.as_slice())
        .map_err(unreadable("signed part"))?;
    ASEntrySignedBody::decode(inner.body.as_slice()).map_err(unreadable("body"))
}

/// Reads an entry. `next` is the ISD-AS of the next entry, if there is one.
fn entry(body: &ASEntrySignedBody, first: bool, next: Option<u64>) -> Result<Entry, String> {
    let isd_as = one_as("AS", body.isd_as)?;
    let follows = next.unwrap_or(0);
    if body.next_isd_as != follows {
        let [named, follows] = [body.next_isd_as, follows].map(IsdAsn::from_u64);
        return Err(format!("{named} as the next AS, where {follows} follows"));
    }
    let hop_entry = body.hop_entry.as_ref().ok_or("no hop entry")?;
    let hop = hop(hop_entry.hop_field.as_ref(), !first, next.is_some())?;
    let extensions = body.extensions.clone().unwrap_or_default();
    let peers = body.peer_entries.iter().map(|entry| peer(entry, &hop));
    Ok(Entry {
        isd_as,
        mtu: mtu(body.mtu),
        ingress_mtu: mtu(hop_entry.ingress_mtu),
        peers: peers.collect::<Result<_, _>>()?,
        hop,
        info: extensions.static_info.unwrap_or_default(),
        discovery: discovery(&extensions.discovery.unwrap_or_default()),
    })
}

fn one_as(part: &str, isd_as: u64) -> Result<IsdAsn, String> {
    let isd_as = IsdAsn::from_u64(isd_as);
    if isd_as.is_wildcard() {
        return Err(format!("{isd_as} as its {part}, which is not one AS"));
    }
    Ok(isd_as)
}

/// Limits an MTU to 65535 bytes, the largest packet in SCION.
fn mtu(bytes: u32) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// Reads an interface number, which must be 0 if and only if `set` is `false`.
fn interface(part: &str, id: u64, set: bool) -> Result<u16, String> {
    let read = u16::try_from(id).ok().filter(|&id| (id != 0) == set);
    read.ok_or_else(|| {
        format!(
            "{part} {id}: an interface has 1 to 65535, the first ingress and the last egress are 0"
        )
    })
}

/// Reads a hop field. `ingress` and `egress` say whether it must have these interfaces.
fn hop(field: Option<&HopFieldMessage>, ingress: bool, egress: bool) -> Result<HopField, String> {
    let field = field.ok_or("no hop field")?;
    let (units, mac) = (field.exp_time, &field.mac);
    Ok(HopField {
        flags: 0,
        cons_ingress: interface("ingress", field.ingress, ingress)?,
        cons_egress: interface("egress", field.egress, egress)?,
        exp_time: u8::try_from(units)
            .map_err(|_| format!("an expiration of {units} units: a hop field has at most 255"))?,
        mac: (mac.as_slice().try_into())
            .map_err(|_| format!("a MAC of {} bytes: it has 6", mac.len()))?,
    })
}

fn peer(entry: &PeerEntry, main: &HopField) -> Result<Peer, String> {
    let hop = hop(entry.hop_field.as_ref(), true, main.cons_egress != 0)?;
    let [own, beacon] = [hop.cons_egress, main.cons_egress];
    if own != beacon {
        return Err(format!(
            "a peering hop field with egress {own}, where the beacon leaves by {beacon}"
        ));
    }
    Ok(Peer {
        isd_as: one_as("peer", entry.peer_isd_as)?,
        interface: interface("peer interface", entry.peer_interface, true)?,
        mtu: mtu(entry.peer_mtu),
        hop,
    })
}

/// The services that an AS announces, without those whose addresses are invalid.
fn discovery(announced: &DiscoveryExtension) -> Discovery {
    let read = |addresses: &[Vec<u8>]| {
        let texts = addresses
            .iter()
            .filter_map(|text| std::str::from_utf8(text).ok());
        texts.filter_map(|text| text.parse().ok()).collect()
    };
    Discovery {
        control_services: read(&announced.control_service_addresses),
        discovery_services: read(&announced.discovery_service_addresses),
    }
}

fn hash(entries: &[Entry]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for entry in entries {
        hash.update(entry.isd_as.to_be_bytes());
        hash.update(entry.hop.cons_ingress.to_be_bytes());
        hash.update(entry.hop.cons_egress.to_be_bytes());
    }
    hash.finalize().into()
}

/// The accumulated segment identifiers (betas) of a segment: each AS folds its MAC into the
/// previous one.
fn betas(id: u16, entries: &[Entry]) -> Vec<u16> {
    let mut beta = id;
    let mut betas = vec![beta];
    for entry in entries {
        beta = entry.hop.chain(beta);
        betas.push(beta);
    }
    betas
}

#[cfg(test)]
mod tests;
