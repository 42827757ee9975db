//! Segments joined to paths: up, core and down, shortcuts and peering.
//!
//! The rules are those of scionproto's `combinator` package. Its own Rust
//! rendering in `sciparse` builds every combination at once and cannot name
//! the links crossed; this one keeps only the shortest.

use crate::segment::{Peer, Segment};
use sciparse::{
    core::encode::WireEncode,
    dataplane_path::standard::{
        model::{HopField, InfoField, Segment as WireSegment, StandardPath},
        types::{HopFieldFlags, HopFieldMac, InfoFieldFlags},
    },
};
use std::collections::{BinaryHeap, HashMap, HashSet};

/// The segments between two ASes.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// From core ASes to the source.
    pub up: Vec<Segment>,
    /// From core ASes on the destination's side to core ASes on the source's.
    pub core: Vec<Segment>,
    /// From core ASes to the destination.
    pub down: Vec<Segment>,
}

/// A path from the source to the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Combined {
    /// The data-plane path.
    pub raw: Vec<u8>,
    /// The links crossed, as places in the network.
    pub links: Vec<usize>,
    /// The ASes, one more than links.
    pub ases: Vec<usize>,
}

/// Which list of [`Segments`] a piece is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Up,
    Core,
    Down,
}

/// A part of a segment as a path uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    kind: Kind,
    /// The place of the segment in its list.
    segment: usize,
    /// The first AS of the segment that is used.
    cut: usize,
    /// The peering entry by which the path enters or leaves that AS.
    peer: Option<usize>,
}

/// Up to three pieces; ordered by the links crossed, then by the pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Combination {
    links: usize,
    pieces: [Option<Piece>; 3],
}

/// The `limit` shortest paths from `src` to `dst`, no two over the same links.
/// Nothing when `src` is `dst`.
pub(crate) fn combine(segments: &Segments, src: usize, dst: usize, limit: usize) -> Vec<Combined> {
    let mut shortest = Shortest {
        segments,
        limit,
        kept: BinaryHeap::new(),
        crossed: HashSet::new(),
    };
    if src != dst {
        shortest.singles(src, dst);
        shortest.pairs(src, dst);
        shortest.triples();
    }
    shortest
        .kept
        .into_sorted_vec()
        .into_iter()
        .filter_map(|found| segments.build(&found))
        .collect()
}

/// The shortest combinations found so far.
struct Shortest<'a> {
    segments: &'a Segments,
    limit: usize,
    kept: BinaryHeap<Combination>,
    /// The links of each: segments that differ only above a shortcut make the
    /// same path.
    crossed: HashSet<Vec<usize>>,
}

impl Shortest<'_> {
    /// One segment: the other AS lies on it.
    fn singles(&mut self, src: usize, dst: usize) {
        let Segments { up, core, down } = self.segments;
        for (segment, s) in up.iter().enumerate() {
            if let Some(cut) = s.place_above_end(dst) {
                self.offer(&[Piece::cut(Kind::Up, segment, cut)]);
            }
        }
        for (segment, s) in down.iter().enumerate() {
            if let Some(cut) = s.place_above_end(src) {
                self.offer(&[Piece::cut(Kind::Down, segment, cut)]);
            }
        }
        for (segment, s) in core.iter().enumerate() {
            if s.last() == src && s.first() == dst {
                self.offer(&[Piece::whole(Kind::Core, segment)]);
            }
        }
    }

    fn pairs(&mut self, src: usize, dst: usize) {
        let Segments { up, core, down } = self.segments;
        for (c, core) in core.iter().enumerate() {
            let whole = Piece::whole(Kind::Core, c);
            if core.first() == dst {
                for (u, _) in up.iter().enumerate().filter(|s| s.1.first() == core.last()) {
                    self.offer(&[Piece::whole(Kind::Up, u), whole]);
                }
            }
            if core.last() == src {
                for (d, _) in down
                    .iter()
                    .enumerate()
                    .filter(|s| s.1.first() == core.first())
                {
                    self.offer(&[whole, Piece::whole(Kind::Down, d)]);
                }
            }
        }
        for (u, up) in up.iter().enumerate() {
            for (d, down) in down.iter().enumerate() {
                self.up_down((u, up), (d, down));
            }
        }
    }

    /// Two segments that meet in an AS, or at the two ends of a peering link.
    fn up_down(&mut self, (u, up): (usize, &Segment), (d, down): (usize, &Segment)) {
        for i in 0..up.route.links.len() {
            for j in 0..down.route.links.len() {
                if up.route.ases[i] == down.route.ases[j] {
                    self.offer(&[Piece::cut(Kind::Up, u, i), Piece::cut(Kind::Down, d, j)]);
                }
            }
        }
        for (i, ups) in up.peers.iter().enumerate() {
            for (p, peer) in ups.iter().enumerate() {
                for (j, downs) in down.peers.iter().enumerate() {
                    let meets = |other: &Peer| other.link == peer.link;
                    if down.route.ases[j] != peer.to {
                        continue;
                    }
                    if let Some(q) = downs.iter().position(meets) {
                        let over = |kind, segment, cut, peer| Piece {
                            peer: Some(peer),
                            ..Piece::cut(kind, segment, cut)
                        };
                        self.offer(&[over(Kind::Up, u, i, p), over(Kind::Down, d, j, q)]);
                    }
                }
            }
        }
    }

    /// Up, core and down.
    fn triples(&mut self) {
        let Segments { up, core, down } = self.segments;
        let mut from: HashMap<usize, Vec<usize>> = HashMap::new();
        for (d, down) in down.iter().enumerate() {
            from.entry(down.first()).or_default().push(d);
        }
        let mut to: HashMap<usize, Vec<usize>> = HashMap::new();
        for (u, up) in up.iter().enumerate() {
            to.entry(up.first()).or_default().push(u);
        }
        for (c, core) in core.iter().enumerate() {
            for &u in to.get(&core.last()).into_iter().flatten() {
                for &d in from.get(&core.first()).into_iter().flatten() {
                    self.offer(&[
                        Piece::whole(Kind::Up, u),
                        Piece::whole(Kind::Core, c),
                        Piece::whole(Kind::Down, d),
                    ]);
                }
            }
        }
    }

    /// Keeps a combination if it has no loop and is short enough.
    fn offer(&mut self, pieces: &[Piece]) {
        let mut combination = Combination {
            links: 0,
            pieces: [None; 3],
        };
        for (slot, &piece) in combination.pieces.iter_mut().zip(pieces) {
            *slot = Some(piece);
            combination.links += self.segments.links(&piece);
        }
        let full = self.kept.len() == self.limit;
        if full && self.kept.peek().is_none_or(|last| *last <= combination) {
            return;
        }
        let (ases, links) = self.segments.walk(&combination);
        let distinct: HashSet<_> = ases.iter().collect();
        if distinct.len() < ases.len() || !self.crossed.insert(links) {
            return;
        }
        if full && let Some(longest) = self.kept.pop() {
            self.crossed.remove(&self.segments.walk(&longest).1);
        }
        self.kept.push(combination);
    }
}

impl Piece {
    fn whole(kind: Kind, segment: usize) -> Piece {
        Piece::cut(kind, segment, 0)
    }

    fn cut(kind: Kind, segment: usize, cut: usize) -> Piece {
        Piece {
            kind,
            segment,
            cut,
            peer: None,
        }
    }
}

impl Segment {
    /// Where an AS lies on the segment, if not at its end.
    fn place_above_end(&self, r#as: usize) -> Option<usize> {
        let above = &self.route.ases[..self.route.links.len()];
        above.iter().position(|&a| a == r#as)
    }
}

impl Segments {
    fn of(&self, piece: &Piece) -> &Segment {
        match piece.kind {
            Kind::Up => &self.up[piece.segment],
            Kind::Core => &self.core[piece.segment],
            Kind::Down => &self.down[piece.segment],
        }
    }

    /// The links a piece adds; a peering link counts where it is left by.
    fn links(&self, piece: &Piece) -> usize {
        let within = self.of(piece).route.links.len() - piece.cut;
        within + usize::from(piece.peer.is_some() && piece.kind == Kind::Up)
    }

    /// The ASes and links of a combination, in the order of travel.
    fn walk(&self, combination: &Combination) -> (Vec<usize>, Vec<usize>) {
        let mut ases: Vec<usize> = Vec::with_capacity(combination.links + 1);
        let mut links: Vec<usize> = Vec::with_capacity(combination.links);
        for piece in combination.pieces.iter().flatten() {
            let segment = self.of(piece);
            let (part, between) = (
                &segment.route.ases[piece.cut..],
                &segment.route.links[piece.cut..],
            );
            // Where a peering link was crossed the pieces share no AS.
            let shared = usize::from(piece.peer.is_none() && !ases.is_empty());
            if piece.kind == Kind::Down {
                ases.extend(part.iter().skip(shared));
                links.extend(between);
            } else {
                ases.extend(part.iter().rev().skip(shared));
                links.extend(between.iter().rev());
                if let Some(peer) = piece.peer {
                    links.push(segment.peers[piece.cut][peer].link);
                }
            }
        }
        (ases, links)
    }

    /// The data-plane path of a combination. None if it does not fit a packet,
    /// which the bound on a segment's length rules out.
    fn build(&self, combination: &Combination) -> Option<Combined> {
        let mut path = StandardPath::new_empty();
        for piece in combination.pieces.iter().flatten() {
            if path.segments.try_push(self.wire(piece)).is_some() {
                return None;
            }
        }
        let raw = match path.try_encode_to_vec() {
            Ok(raw) => raw,
            Err(reason) => {
                tracing::warn!(
                    "a path of {} links is left out: {reason}",
                    combination.links
                );
                return None;
            }
        };
        let (ases, links) = self.walk(combination);
        Some(Combined { raw, links, ases })
    }

    fn wire(&self, piece: &Piece) -> WireSegment {
        let segment = self.of(piece);
        let down = piece.kind == Kind::Down;
        let field = |at: usize| {
            let hop = match piece.peer {
                Some(peer) if at == piece.cut => segment.peers[at][peer].hop,
                _ => segment.hops[at],
            };
            HopField {
                flags: HopFieldFlags::empty(),
                expiration_units: segment.stamp.exp_time,
                cons_ingress: hop.ingress,
                cons_egress: hop.egress,
                mac: HopFieldMac::new(hop.mac),
            }
        };
        let used = piece.cut..segment.hops.len();
        let mut flags = InfoFieldFlags::empty();
        flags.set(InfoFieldFlags::CONS_DIR, down);
        flags.set(InfoFieldFlags::PEERING, piece.peer.is_some());
        // The accumulator of the first hop that is crossed. A peering hop is
        // checked with that of the hop after it (scionproto, combinator's
        // calculateBeta).
        let first = if down {
            piece.cut
        } else {
            segment.hops.len() - 1
        };
        let at_peer = piece.peer.is_some() && first == piece.cut;
        WireSegment {
            info_field: InfoField {
                flags,
                segment_id: segment.betas[first + usize::from(at_peer)],
                timestamp: segment.stamp.timestamp,
            },
            hop_fields: if down {
                used.map(field).collect()
            } else {
                used.rev().map(field).collect()
            },
        }
    }
}
