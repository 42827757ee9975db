//! Walks a path hop by hop; each AS checks it with its key.
//!
//! The steps follow scionproto's border router (`router/dataplane.go`), independently of how this
//! crate creates paths.

use hawser_packet::path::{HopKey, PathHop, StandardPath, reverse};
use hawser_topology::{IsdAsn, LinkKind, Network, Side};

use super::hop_key;

/// A path in a packet's header, at one of its hops.
struct Packet {
    raw: Vec<u8>,
    path: StandardPath,
    hop: usize,
}

/// Sends a packet over the data-plane path from `src` to `dst` at `now`, and an answer back over
/// the reversed path. Returns the interfaces that the packet crossed.
pub(crate) fn walk(
    network: &Network,
    raw: &[u8],
    src: IsdAsn,
    dst: IsdAsn,
    now: u64,
) -> Result<Vec<(IsdAsn, u16)>, String> {
    let mut packet = Packet::new(raw.to_vec())?;
    let there = packet.travel(network, src, dst, now)?;
    let mut answer = Packet::new(reverse(&packet.raw).map_err(|e| e.to_string())?)?;
    let back = answer.travel(network, dst, src, now);
    let mut back = back.map_err(|e| format!("back: {e}"))?;
    back.reverse();
    if back != there {
        return Err("the reversed path crosses other interfaces".to_owned());
    }
    Ok(there)
}

impl Packet {
    fn new(raw: Vec<u8>) -> Result<Self, String> {
        let path = StandardPath::parse(&raw, 0..raw.len()).map_err(|e| e.to_string())?;
        path.check_position().map_err(|e| e.to_string())?;
        let hop = path.current_hop;
        Ok(Self { raw, path, hop })
    }

    fn travel(
        &mut self,
        network: &Network,
        src: IsdAsn,
        dst: IsdAsn,
        now: u64,
    ) -> Result<Vec<(IsdAsn, u16)>, String> {
        let mut crossed = Vec::new();
        let (mut at, mut ingress) = (src, 0);
        loop {
            let egress = self.process(network, at, ingress, at == dst, now);
            let egress = egress.map_err(|e| format!("{at} from interface {ingress}: {e}"))?;
            let Some(egress) = egress else {
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

    /// Processes the packet in one AS. Returns the egress interface, or `None` at the destination.
    fn process(
        &mut self,
        network: &Network,
        at: IsdAsn,
        ingress: u16,
        deliver: bool,
        now: u64,
    ) -> Result<Option<u16>, String> {
        let peering = self.is_peering_hop()?;
        let PathHop { info, field, .. } = self.current();
        let hop_in = field.ingress(&info);
        if ingress != 0 && ingress != hop_in {
            return Err(format!("the hop field has ingress {hop_in}"));
        }
        if !info.cons_dir && ingress != 0 && !peering {
            self.chain();
        }
        self.verify(at, now)?;
        let last = self.hop + 1 == self.path.hops;
        match (deliver, last) {
            (true, true) => return Ok(None),
            (true, false) => return Err("arrived before the path's end".to_owned()),
            (false, true) => return Err("the path ends before the destination".to_owned()),
            (false, false) => {}
        }
        let changes = self.path.changes_after(self.hop) && !peering;
        if changes {
            self.advance();
            self.verify(at, now)?;
        }
        let PathHop { info, field, .. } = self.current();
        let egress = field.egress(&info);
        if ingress != 0 {
            allowed(network, at, (ingress, egress), changes, peering)?;
        }
        if info.cons_dir && !peering {
            self.chain();
        }
        self.advance();
        Ok(Some(egress))
    }

    fn current(&self) -> PathHop {
        self.path.at(&self.raw, self.hop)
    }

    fn chain(&mut self) {
        let PathHop { info, field, .. } = self.current();
        let (segment, id) = (self.path.info_of(self.hop), field.chain(info.segment_id));
        self.path.set_segment_id(&mut self.raw, segment, id);
    }

    fn advance(&mut self) {
        self.hop += 1;
        self.path.set_current(&mut self.raw, self.hop);
    }

    /// A peering path has two segments; its peering hops are the last of the first and the first of
    /// the second.
    fn is_peering_hop(&self) -> Result<bool, String> {
        if !self.current().info.peer {
            return Ok(false);
        }
        if self.path.infos != 2 {
            return Err("a peering path with other than two segments".to_owned());
        }
        let first = self.path.segments[0];
        Ok(self.hop + 1 == first || self.hop == first)
    }

    fn verify(&self, at: IsdAsn, now: u64) -> Result<(), String> {
        let PathHop { info, field, .. } = self.current();
        if 2 * now >= field.expiry_half_seconds(&info) {
            return Err("the hop field is expired".to_owned());
        }
        if u64::from(info.timestamp) > now {
            return Err("the segment is from the future".to_owned());
        }
        let key = HopKey::new(&hop_key(at));
        if key.mac(&field.mac_input(&info)) != field.mac {
            return Err("wrong MAC".to_owned());
        }
        Ok(())
    }
}

/// The role of the neighbour on a link.
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
