//! What the control plane of one AS knows: segments, and paths made of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use connectrpc::PreEncoded;
use hawser_segment::combine;
use hawser_topology::{AsTopology, IsdAsn, Shape};
use scion_protobuf::buffa::Message;
use scion_protobuf::proto::control_plane::v1::PathSegment;
use scion_protobuf::proto::daemon::v1::PathsResponse;

use crate::cache::{CachedSegment, SegmentCache};
use crate::error::LookupError;
use crate::found::Found;
use crate::graph::{Along, Graph};
use crate::pki::Pki;
use crate::revoked::Revoked;
use crate::routes::{distances, routes};
use crate::segment::Stamp;
use crate::wire;

/// Segments between two core ASes, and between a core AS and one below it.
pub(crate) const SEGMENTS_PER_PAIR: usize = 20;

/// Paths answered for one destination, the shortest.
pub(crate) const MAX_PATHS: usize = 200;

/// Bytes of answers kept for the next time they are asked for.
const MAX_KEPT: usize = 1 << 20;

/// The state of one AS's control plane.
pub(crate) struct Plane {
    pub graph: Graph,
    pub topology: AsTopology,
    /// What segments are signed with, where the network has it.
    pub pki: Option<Pki>,
    keys: Vec<[u8; 16]>,
    local: usize,
    lifetime: Duration,
    stamp: Stamp,
    /// Interfaces that hosts reported down.
    revoked: Revoked,
    /// Segments made with `stamp` over the links as they are.
    cache: SegmentCache,
    /// Answers by destination, made of them.
    answers: HashMap<IsdAsn, Answer>,
    kept: usize,
    /// Grows whenever other segments may be handed out than before.
    generation: u64,
}

/// The answer to a request for paths.
pub(crate) type Answer = PreEncoded<PathsResponse>;

/// What a segment lookup starts or ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// One AS.
    As(usize),
    /// Any core AS of an ISD.
    Core { isd: u16 },
}

impl Plane {
    /// `keys` are the hop keys of all ASes in the order of the graph, `local` the place of the AS
    /// itself.
    pub fn new(
        graph: Graph,
        keys: Vec<[u8; 16]>,
        topology: AsTopology,
        local: usize,
        lifetime: Duration,
    ) -> Self {
        Self {
            graph,
            topology,
            pki: None,
            keys,
            local,
            lifetime,
            // Due at once: the first request makes the first segments.
            stamp: Stamp::new(0, lifetime),
            revoked: Revoked::default(),
            cache: SegmentCache::default(),
            answers: HashMap::new(),
            kept: 0,
            generation: 0,
        }
    }

    /// Segments made from now on hold for `lifetime`.
    pub fn set_lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime;
        self.stamp = Stamp::new(0, lifetime);
        self.forget();
    }

    /// The AS itself.
    pub fn isd_as(&self) -> IsdAsn {
        self.graph.r#as(self.local).isd_as
    }

    /// Paths to an AS, or to all core ASes of an ISD (`1-0`), as the daemon answers them, at `now`
    /// (Unix seconds).
    pub fn paths(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Answer, LookupError> {
        self.check_source(src)?;
        let ends = self.ends(dst)?;
        self.renew(now);
        if ends == Ends::As(self.local) {
            let mtu = self.graph.r#as(self.local).mtu;
            return Ok(Answer::from_message(&wire::local_path(mtu, now)));
        }
        if self.revoked.expire(now) {
            self.forget_answers();
        }
        if let Some(answer) = self.answers.get(&dst) {
            return Ok(answer.clone());
        }
        let mut paths = Vec::new();
        for dst in self.ases(&ends) {
            paths.extend(self.combined(dst));
        }
        let bytes = wire::paths(&self.topology, &paths).encode_to_bytes();
        if self.kept + bytes.len() > MAX_KEPT {
            self.forget_answers();
        }
        self.kept += bytes.len();
        let answer = Answer::from_bytes_unchecked(bytes);
        self.answers.insert(dst, answer.clone());
        Ok(answer)
    }

    /// The paths to an AS, in scionproto's order, without those over an interface that a host
    /// reported down.
    fn combined(&mut self, dst: usize) -> Vec<hawser_segment::Combined> {
        if dst == self.local {
            return Vec::new();
        }
        let segments = self
            .joining(&Ends::As(self.local), &Ends::As(dst))
            .segments();
        let (src, dst) = (self.isd_as(), self.graph.r#as(dst).isd_as);
        let mut paths = combine(&segments, src, dst, MAX_PATHS);
        paths.retain(|path| !self.revoked.any(&path.path.interfaces));
        paths
    }

    /// Leaves out paths over an interface of the network for a while: a host heard that it is down.
    pub fn revoke(&mut self, isd_as: IsdAsn, id: u64, now: u64) {
        let id = u16::try_from(id).ok();
        if let Some(id) = id.filter(|&id| self.graph.link_at(isd_as, id).is_some()) {
            self.revoked.add(isd_as, id, now);
            self.forget_answers();
        }
    }

    /// All segments that join two ends: those to core ASes on either side, and those between these.
    fn joining(&mut self, src: &Ends, dst: &Ends) -> Found {
        let (up, near) = self.core_side(src);
        let (down, far) = self.core_side(dst);
        let core = self.between_core(&far, &near);
        Found { up, core, down }
    }

    /// The segments that join the ends to core ASes, and those core ASes.
    fn core_side(&mut self, ends: &Ends) -> (Vec<Arc<CachedSegment>>, Vec<usize>) {
        match *ends {
            Ends::As(at) if !self.graph.r#as(at).core => {
                let segments = self.below_core(at, None);
                let firsts = segments.iter().map(|cached| cached.segment.first());
                let mut core: Vec<_> = firsts.filter_map(|first| self.graph.find(first)).collect();
                core.sort_unstable();
                core.dedup();
                (segments, core)
            }
            _ => (Vec::new(), self.ases(ends)),
        }
    }

    /// The ASes that ends stand for.
    fn ases(&self, ends: &Ends) -> Vec<usize> {
        match *ends {
            Ends::As(at) => vec![at],
            Ends::Core { isd } => (0..self.graph.len())
                .filter(|&at| self.graph.r#as(at).core && self.isd(at) == isd)
                .collect(),
        }
    }

    /// The segments down to an AS, from all core ASes or from those of `from`; none to a core AS.
    fn below_core(&mut self, to: usize, from: Option<&[usize]>) -> Vec<Arc<CachedSegment>> {
        if self.graph.r#as(to).core {
            return Vec::new();
        }
        let distance = distances(&self.graph, to, Along::Children);
        let mut segments = Vec::new();
        for at in 0..self.graph.len() {
            if self.graph.r#as(at).core && from.is_none_or(|from| from.contains(&at)) {
                segments.extend(self.between(at, to, Along::Children, &distance));
            }
        }
        segments
    }

    /// The segments between core ASes, in beaconing direction from each of `from` to each of `to`.
    fn between_core(&mut self, from: &[usize], to: &[usize]) -> Vec<Arc<CachedSegment>> {
        let mut segments = Vec::new();
        for &to in to {
            let distance = distances(&self.graph, to, Along::Core);
            for &from in from.iter().filter(|&&from| from != to) {
                segments.extend(self.between(from, to, Along::Core, &distance));
            }
        }
        segments
    }

    fn between(
        &mut self,
        from: usize,
        to: usize,
        along: Along,
        distance: &[Option<u32>],
    ) -> Vec<Arc<CachedSegment>> {
        let Self {
            graph,
            keys,
            cache,
            stamp,
            ..
        } = self;
        routes(graph, from, to, along, distance, SEGMENTS_PER_PAIR)
            .into_iter()
            .filter_map(|route| cache.of(graph, keys, route, *stamp, along))
            .collect()
    }

    pub fn find(&self, isd_as: IsdAsn) -> Result<usize, LookupError> {
        if isd_as.is_wildcard() {
            return Err(LookupError::Wildcard(isd_as));
        }
        self.graph.find(isd_as).ok_or(LookupError::Unknown(isd_as))
    }

    /// 0 stands for the AS itself.
    fn check_source(&self, asked: IsdAsn) -> Result<(), LookupError> {
        let local = self.isd_as();
        if asked == IsdAsn::WILDCARD || asked == local {
            return Ok(());
        }
        Err(LookupError::Foreign { local, asked })
    }

    /// The segments between `src` and `dst` at `now` (Unix seconds), as scionproto's control
    /// service answers them: up segments from the AS itself to the core ASes of its ISD (`1-0`) or
    /// one of them; down segments from core ASes, or one, to an AS below; core segments between
    /// core ASes, from any of `dst` to any of `src` in the direction of beaconing.
    ///
    /// Where `src` is the AS itself, which may be said as 0, and `dst` one AS, the answer is all
    /// that paths between them are made of. scionproto answers only a part of it to some of these
    /// requests and refuses the others.
    pub fn lookup(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Found, LookupError> {
        let src = if src == IsdAsn::WILDCARD {
            Ends::As(self.local)
        } else {
            self.ends(src)?
        };
        let dst = self.ends(dst)?;
        self.renew(now);
        let mut found = Found::default();
        match (src, dst) {
            (Ends::As(a), Ends::As(b)) if a == b => {}
            (Ends::As(at), Ends::As(_)) if at == self.local => found = self.joining(&src, &dst),
            (Ends::As(at), _) if !self.graph.r#as(at).core => {
                self.check_source(self.graph.r#as(at).isd_as)?;
                let to = self.ases(&dst);
                found.up = self.below_core(at, Some(&to));
            }
            (_, Ends::As(at)) if !self.graph.r#as(at).core => {
                let from = self.ases(&src);
                found.down = self.below_core(at, Some(&from));
            }
            _ => {
                let (from, to) = (self.ases(&dst), self.ases(&src));
                found.core = self.between_core(&from, &to);
            }
        }
        Ok(found)
    }

    /// A segment as hosts are sent it.
    pub fn message(&mut self, segment: &CachedSegment) -> Result<PathSegment, LookupError> {
        let message = segment.message(self.pki.as_mut());
        message.map_err(|reason| LookupError::Unsigned(reason.to_string()))
    }

    /// Which segments are handed out: another number, other segments.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    fn isd(&self, at: usize) -> u16 {
        self.graph.r#as(at).isd_as.isd().to_u16()
    }

    fn ends(&self, isd_as: IsdAsn) -> Result<Ends, LookupError> {
        let isd = isd_as.isd();
        if !isd_as.asn().is_wildcard() {
            return self.find(isd_as).map(Ends::As);
        }
        if isd.is_wildcard() {
            return Err(LookupError::Wildcard(isd_as));
        }
        let isd = isd.to_u16();
        if !(0..self.graph.len()).any(|at| self.isd(at) == isd) {
            return Err(LookupError::Unknown(isd_as));
        }
        Ok(Ends::Core { isd })
    }

    /// Takes a link down or up and gives it a shape: answers made before are forgotten, so no path
    /// over a link that is down is given out any more.
    pub fn set_link(&mut self, link: usize, up: bool, shape: Shape) {
        if self.graph.set_link(link, up, shape) {
            self.forget();
        }
    }

    /// Makes segments anew if they are due. Nothing is made ahead of a request, so an idle service
    /// needs no timer.
    fn renew(&mut self, now: u64) {
        if self.stamp.is_due(now) {
            self.stamp = Stamp::new(now, self.lifetime);
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.generation += 1;
        self.cache.clear();
        self.forget_answers();
    }

    fn forget_answers(&mut self) {
        self.answers.clear();
        self.kept = 0;
    }
}

#[cfg(test)]
mod tests;
