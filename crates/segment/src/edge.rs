//! The parts of segments that paths consist of, as edges of a graph.
//!
//! The vertices of the graph are ASes and peering links; a path is a sequence of one to three edges
//! from the source to the destination (scionproto, `combinator`).

use hawser_address::IsdAsn;
use hawser_packet::path::HopField;
use hawser_path::Interface;

use crate::segment::{Entry, Segment};

/// The role of a segment in a path. A path has at most one segment of each kind, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SegmentKind {
    Up,
    Core,
    Down,
}

/// A vertex of the graph, where edges meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Vertex {
    As(IsdAsn),
    /// A peering link, by its two interfaces in the direction of travel.
    Peering(Interface, Interface),
}

/// The part of a segment from the AS at `cut` to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge<'a> {
    pub kind: SegmentKind,
    pub segment: &'a Segment,
    /// Index of the first AS of the segment that the path uses.
    pub cut: usize,
    /// Index of the peering entry by which the path enters or leaves that AS, if it does.
    pub peer: Option<usize>,
}

/// An edge with its two ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub from: Vertex,
    pub to: Vertex,
    pub edge: Edge<'a>,
}

/// One AS of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used<'a> {
    pub entry: &'a Entry,
    /// The hop field that the path uses.
    pub hop: &'a HopField,
    /// The interfaces of the AS that the path crosses, in the direction of beaconing.
    pub interfaces: [Option<u16>; 2],
    /// The MTU of the link by which the beacon arrived, if the path crosses it.
    pub link_mtu: Option<u16>,
}

/// All edges of the segments of a kind.
pub(crate) fn edges(kind: SegmentKind, segments: &[Segment]) -> Vec<Placed<'_>> {
    let mut edges = Vec::new();
    for segment in segments {
        let mut add = |cut, peer| {
            let edge = Edge {
                kind,
                segment,
                cut,
                peer,
            };
            edges.push(edge.placed());
        };
        let last = segment.entries.len() - 1;
        if kind == SegmentKind::Core {
            // Core segments have neither shortcuts nor peering links. A segment of one AS has no
            // links.
            if last > 0 {
                add(0, None);
            }
            continue;
        }
        for (cut, entry) in segment.entries.iter().enumerate() {
            if cut < last {
                add(cut, None);
            }
            for peer in 0..entry.peers.len() {
                add(cut, Some(peer));
            }
        }
    }
    edges
}

impl<'a> Edge<'a> {
    fn placed(self) -> Placed<'a> {
        let down = self.kind == SegmentKind::Down;
        let end = Vertex::As(self.segment.last());
        let entry = &self.segment.entries[self.cut];
        let other = match self.peer {
            None => Vertex::As(entry.isd_as),
            Some(peer) => {
                let peer = &entry.peers[peer];
                let near = Interface {
                    isd_as: entry.isd_as,
                    id: peer.hop.cons_ingress,
                };
                let far = Interface {
                    isd_as: peer.isd_as,
                    id: peer.interface,
                };
                if down {
                    Vertex::Peering(far, near)
                } else {
                    Vertex::Peering(near, far)
                }
            }
        };
        let (from, to) = if down { (other, end) } else { (end, other) };
        Placed {
            from,
            to,
            edge: self,
        }
    }

    /// The number of links. A peering link belongs to the segment that it leads to.
    pub fn links(&self) -> usize {
        let peering = self.peer.is_some() && self.kind == SegmentKind::Down;
        self.segment.entries.len() - 1 - self.cut + usize::from(peering)
    }

    /// The ASes of the edge, in the direction of beaconing.
    pub fn used(&self) -> impl DoubleEndedIterator<Item = Used<'a>> + use<'a> {
        let &Edge { cut, peer, .. } = self;
        let entries = self.segment.entries.iter().enumerate().skip(cut);
        entries.map(move |(at, entry)| {
            let some = |id: u16| (id != 0).then_some(id);
            match peer {
                Some(peer) if at == cut => {
                    let peer = &entry.peers[peer];
                    Used {
                        entry,
                        hop: &peer.hop,
                        interfaces: [peer.hop.cons_ingress, peer.hop.cons_egress].map(some),
                        link_mtu: Some(peer.mtu),
                    }
                }
                _ => {
                    // With a shortcut the path changes segments inside the AS, and does not cross
                    // the ingress interface.
                    let shortcut = at == cut && cut != 0;
                    let [ingress, egress] =
                        [entry.hop.cons_ingress, entry.hop.cons_egress].map(some);
                    Used {
                        entry,
                        hop: &entry.hop,
                        interfaces: [ingress.filter(|_| !shortcut), egress],
                        link_mtu: some(entry.ingress_mtu).filter(|_| !shortcut),
                    }
                }
            }
        })
    }

    /// Appends the interfaces that the path crosses, in the direction of travel.
    pub fn interfaces(&self, into: &mut Vec<Interface>) {
        let start = into.len();
        for used in self.used() {
            let isd_as = used.entry.isd_as;
            let ids = used.interfaces.into_iter().flatten();
            into.extend(ids.map(|id| Interface { isd_as, id }));
        }
        if self.kind != SegmentKind::Down {
            into[start..].reverse();
        }
    }

    /// The earliest expiry of the hop fields, in half seconds since the Unix epoch.
    pub fn expiry(&self) -> u64 {
        let info = &self.segment.info;
        let expiries = self.used().map(|used| used.hop.expiry_half_seconds(info));
        expiries.min().unwrap_or(0)
    }

    /// The accumulated segment identifier (beta) for the MAC of the first hop field in the
    /// direction of travel. A peering hop has that of the next hop (scionproto, combinator,
    /// `calculateBeta`).
    pub fn beta(&self) -> u16 {
        let first = match self.kind {
            SegmentKind::Down => self.cut,
            _ => self.segment.entries.len() - 1,
        };
        let at_peer = self.peer.is_some() && first == self.cut;
        self.segment.betas[first + usize::from(at_peer)]
    }
}
