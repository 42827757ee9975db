//! A path walked hop by hop, each AS checking it with its own key.
//!
//! The steps are those of scionproto's border router (`router/dataplane.go`), written from there
//! and not from how this crate makes paths.

use std::time::Duration;

use hawser_topology::{IsdAsn, LinkKind, Network, Side};
use sciparse::core::convert::FromView;
use sciparse::core::view::View;
use sciparse::dataplane_path::standard::mac::algo::{calculate_hop_mac, mac_beta_step};
use sciparse::dataplane_path::standard::model::{HopField, StandardPath};
use sciparse::dataplane_path::standard::types::exp_time_to_duration;
use sciparse::dataplane_path::standard::view::StandardPathView;

use super::hop_key;

/// Sends a packet over the data-plane path from `src` to `dst` at `now`, and an answer back over
/// the reversed path. Returns the interfaces it crossed on its way there.
pub(crate) fn walk(
    network: &Network,
    raw: &[u8],
    src: IsdAsn,
    dst: IsdAsn,
    now: u64,
) -> Result<Vec<(IsdAsn, u16)>, String> {
    let (view, rest) = StandardPathView::try_from_slice(raw).map_err(|e| e.to_string())?;
    if !rest.is_empty() {
        return Err(format!("{} bytes too many", rest.len()));
    }
    let mut path = StandardPath::from_view(view);
    if path.hop_field_count() > 64 {
        return Err("more hop fields than the path header can count".to_owned());
    }
    let there = travel(network, &mut path, src, dst, now)?;
    path.try_reverse().map_err(|e| e.to_string())?;
    let mut back = travel(network, &mut path, dst, src, now).map_err(|e| format!("back: {e}"))?;
    back.reverse();
    if back != there {
        return Err("the way back crosses other interfaces".to_owned());
    }
    Ok(there)
}

fn travel(
    network: &Network,
    path: &mut StandardPath,
    src: IsdAsn,
    dst: IsdAsn,
    now: u64,
) -> Result<Vec<(IsdAsn, u16)>, String> {
    let mut crossed = Vec::new();
    let (mut at, mut ingress) = (src, 0);
    loop {
        let Some(egress) = process(network, path, at, ingress, at == dst, now)
            .map_err(|e| format!("{at} from interface {ingress}: {e}"))?
        else {
            return Ok(crossed);
        };
        let (link, side) = network
            .link_at(at, egress)
            .ok_or(format!("{at} has no interface {egress}"))?;
        let far = network.links[link].end(side.other());
        crossed.extend([(at, egress), (far.isd_as, far.id)]);
        (at, ingress) = (far.isd_as, far.id);
    }
}

/// One AS. Returns the interface to send by, or none at the destination.
fn process(
    network: &Network,
    path: &mut StandardPath,
    at: IsdAsn,
    ingress: u16,
    deliver: bool,
    now: u64,
) -> Result<Option<u16>, String> {
    let peering = is_peering_hop(path)?;
    let (info, hop) = current(path);
    let (hop_in, _) = oriented(path, &hop);
    if ingress != 0 && ingress != hop_in {
        return Err(format!("the hop field says {hop_in}"));
    }
    let down = info.flags.cons_dir();
    if !down && ingress != 0 && !peering {
        chain(path, &hop);
    }
    verify(path, at, now)?;
    let last = usize::from(path.current_hop_field) + 1 == path.hop_field_count();
    if deliver || last {
        return match (deliver, last) {
            (true, true) => Ok(None),
            (true, false) => Err("arrived before the path's end".to_owned()),
            _ => Err("the path ends before the destination".to_owned()),
        };
    }
    let changes = ends_segment(path) && !peering;
    if changes {
        advance(path);
        verify(path, at, now)?;
    }
    let (_, hop) = current(path);
    let (_, egress) = oriented(path, &hop);
    if ingress != 0 {
        allowed(network, at, (ingress, egress), changes, peering)?;
    }
    if current(path).0.flags.cons_dir() && !peering {
        chain(path, &hop);
    }
    advance(path);
    Ok(Some(egress))
}

fn current(
    path: &StandardPath,
) -> (
    sciparse::dataplane_path::standard::model::InfoField,
    HopField,
) {
    let info = path.segments[usize::from(path.current_info_field)].info_field;
    let hop = *path
        .iter_hop_fields()
        .nth(usize::from(path.current_hop_field))
        .unwrap();
    (info, hop)
}

/// The hop's interfaces in the direction of travel.
fn oriented(path: &StandardPath, hop: &HopField) -> (u16, u16) {
    if current(path).0.flags.cons_dir() {
        (hop.cons_ingress, hop.cons_egress)
    } else {
        (hop.cons_egress, hop.cons_ingress)
    }
}

fn chain(path: &mut StandardPath, hop: &HopField) {
    let info = &mut path.segments[usize::from(path.current_info_field)].info_field;
    info.segment_id = mac_beta_step(info.segment_id, *hop.mac.as_bytes());
}

fn ends_segment(path: &StandardPath) -> bool {
    let before: usize = path.segments[..=usize::from(path.current_info_field)]
        .iter()
        .map(|segment| segment.hop_fields.len())
        .sum();
    usize::from(path.current_hop_field) + 1 == before
}

fn advance(path: &mut StandardPath) {
    if ends_segment(path) {
        path.current_info_field += 1;
    }
    path.current_hop_field += 1;
}

/// A peering path has two segments; its peering hops are the last of the first and the first of the
/// second.
fn is_peering_hop(path: &StandardPath) -> Result<bool, String> {
    if !current(path).0.flags.peering() {
        return Ok(false);
    }
    if path.segments.len() != 2 {
        return Err("a peering path with other than two segments".to_owned());
    }
    let first = path.segments[0].hop_fields.len();
    let at = usize::from(path.current_hop_field);
    Ok(at + 1 == first || at == first)
}

fn verify(path: &StandardPath, at: IsdAsn, now: u64) -> Result<(), String> {
    let (info, hop) = current(path);
    let born = Duration::from_secs(info.timestamp.into());
    let now = Duration::from_secs(now);
    if now >= born + exp_time_to_duration(hop.expiration_units) {
        return Err("the hop field is expired".to_owned());
    }
    if born > now {
        return Err("the segment is from the future".to_owned());
    }
    let mac = calculate_hop_mac(
        info.segment_id,
        info.timestamp,
        hop.expiration_units,
        hop.cons_ingress,
        hop.cons_egress,
        &hop_key(at),
    );
    if mac != *hop.mac.as_bytes() {
        return Err("wrong MAC".to_owned());
    }
    Ok(())
}

/// What a link's far end is to this AS.
#[derive(Debug, PartialEq, Eq)]
enum To {
    Core,
    Parent,
    Child,
    Peer,
}

fn allowed(
    network: &Network,
    at: IsdAsn,
    (ingress, egress): (u16, u16),
    changes: bool,
    peering: bool,
) -> Result<(), String> {
    let kind = |id| {
        let (link, side) = network
            .link_at(at, id)
            .ok_or(format!("no interface {id}"))?;
        Ok::<_, String>(match (network.links[link].kind, side) {
            (LinkKind::Core, _) => To::Core,
            (LinkKind::Peer, _) => To::Peer,
            (LinkKind::Child, Side::A) => To::Child,
            (LinkKind::Child, Side::B) => To::Parent,
        })
    };
    let pair = (kind(ingress)?, kind(egress)?);
    let fine = match pair {
        (To::Core, To::Core) | (To::Child, To::Parent) | (To::Parent, To::Child) => !changes,
        (To::Core, To::Child) | (To::Child, To::Core) | (To::Child, To::Child) => changes,
        (To::Child, To::Peer) | (To::Peer, To::Child) => peering,
        _ => false,
    };
    if fine {
        Ok(())
    } else {
        Err(format!("{pair:?} with segment change {changes}"))
    }
}
