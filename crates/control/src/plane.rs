//! What the control plane of one AS knows: segments, and paths made of them.

use crate::{
    combine::{Combined, Segments, combine},
    graph::{Along, Graph},
    routes::{distances, routes},
    segment::{Segment, Stamp},
    wire,
};
use connectrpc::PreEncoded;
use hawser_topology::{AsTopology, IsdAsn, Shape};
use scion_protobuf::{buffa::Message, proto::daemon::v1::PathsResponse};
use std::{collections::HashMap, time::Duration};

/// Segments between two core ASes, and between a core AS and one below it.
const SEGMENTS_PER_PAIR: usize = 20;

/// Paths answered for one destination, the shortest.
const MAX_PATHS: usize = 200;

/// Bytes of answers kept for the next time they are asked for.
const MAX_KEPT: usize = 1 << 20;

/// The state of one AS's control plane.
pub(crate) struct Plane {
    pub graph: Graph,
    pub topology: AsTopology,
    keys: Vec<[u8; 16]>,
    local: usize,
    lifetime: Duration,
    stamp: Stamp,
    /// Answers by destination, made with `stamp` over the links as they are.
    answers: HashMap<usize, Answer>,
    kept: usize,
}

/// The answer to a request for paths.
pub(crate) type Answer = PreEncoded<PathsResponse>;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("{0} is not one AS: ask for an AS such as 1-ff00:0:110")]
    Wildcard(IsdAsn),
    #[error("no AS {0} in this network: see network.json for those there are")]
    Unknown(IsdAsn),
    #[error("paths and segments start in the AS of this service, {local}, not in {asked}")]
    Foreign { local: IsdAsn, asked: IsdAsn },
}

/// What a segment lookup starts or ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// One AS.
    As(usize),
    /// Any core AS of an ISD.
    Core { isd: u16 },
}

impl Plane {
    /// `keys` are the hop keys of all ASes in the order of the graph, `local`
    /// the place of the AS itself.
    pub fn new(
        graph: Graph,
        keys: Vec<[u8; 16]>,
        topology: AsTopology,
        local: usize,
        lifetime: Duration,
    ) -> Plane {
        Plane {
            graph,
            topology,
            keys,
            local,
            lifetime,
            // Due at once: the first request makes the first segments.
            stamp: Stamp::new(0, lifetime),
            answers: HashMap::new(),
            kept: 0,
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

    /// Paths to an AS, as the daemon answers them, at `now` (Unix seconds).
    pub fn paths(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Answer, LookupError> {
        self.check_source(src)?;
        let dst = self.find(dst)?;
        self.renew(now);
        if dst == self.local {
            return Ok(Answer::from_message(&wire::local_path(
                self.graph.r#as(dst).mtu,
                now,
            )));
        }
        if let Some(answer) = self.answers.get(&dst) {
            return Ok(answer.clone());
        }
        let paths = self.combined(dst);
        let message = wire::paths(&self.graph, &self.topology, &paths, self.stamp.expiry);
        let bytes = message.encode_to_bytes();
        if self.kept + bytes.len() > MAX_KEPT {
            self.forget();
        }
        self.kept += bytes.len();
        let answer = Answer::from_bytes_unchecked(bytes);
        self.answers.insert(dst, answer.clone());
        Ok(answer)
    }

    /// The paths to an AS, ordered by length, then by the interfaces crossed.
    fn combined(&self, dst: usize) -> Vec<Combined> {
        let (up, near) = self.to_core(&Ends::As(self.local));
        let (down, far) = self.to_core(&Ends::As(dst));
        let core = self.between_core(&far, &near);
        let segments = Segments { up, core, down };
        let mut paths = combine(&segments, self.local, dst, MAX_PATHS);
        paths.sort_by_cached_key(|path| (path.links.len(), self.graph.interfaces(path)));
        paths
    }

    /// The core ASes that segments of an AS start at: itself if it is one.
    fn core_ends(&self, r#as: usize, segments: &[Segment]) -> Vec<usize> {
        if self.graph.r#as(r#as).core {
            return vec![r#as];
        }
        let mut ends: Vec<_> = segments.iter().map(Segment::first).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// The segments from core ASes down to an AS; none to a core AS.
    fn below_core(&self, to: usize) -> Vec<Segment> {
        if self.graph.r#as(to).core {
            return Vec::new();
        }
        let distance = distances(&self.graph, to, Along::Children);
        (0..self.graph.len())
            .filter(|&from| self.graph.r#as(from).core)
            .flat_map(|from| self.between(from, to, Along::Children, &distance))
            .collect()
    }

    /// The segments between core ASes, in beaconing direction from each of
    /// `from` to each of `to`.
    fn between_core(&self, from: &[usize], to: &[usize]) -> Vec<Segment> {
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
        &self,
        from: usize,
        to: usize,
        along: Along,
        distance: &[Option<u32>],
    ) -> impl Iterator<Item = Segment> {
        let peering = along == Along::Children;
        routes(&self.graph, from, to, along, distance, SEGMENTS_PER_PAIR)
            .into_iter()
            .map(move |route| Segment::new(&self.graph, &self.keys, route, self.stamp, peering))
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

    /// The segments that join `src` and `dst` at `now` (Unix seconds), as a
    /// control service answers them.
    ///
    /// `src` is the AS itself (also as 0), a core AS, or a wildcard AS of an
    /// ISD (`1-0`), which stands for its core ASes; so is `dst`, or any AS.
    /// Where a wildcard's ISD is that of the other end, no core segments are
    /// needed: up segments lead to its core ASes, down segments start there.
    pub fn lookup(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Segments, LookupError> {
        let src = if src == IsdAsn::WILDCARD {
            Ends::As(self.local)
        } else {
            self.ends(src)?
        };
        let dst = self.ends(dst)?;
        if let Ends::As(at) = src
            && at != self.local
            && !self.graph.r#as(at).core
        {
            self.check_source(self.graph.r#as(at).isd_as)?;
        }
        if src == dst {
            return Ok(Segments::default());
        }
        self.renew(now);
        let (up, near) = self.to_core(&src);
        let (down, far) = self.to_core(&dst);
        let reached = |ends: &Ends, from: &[usize]| match *ends {
            Ends::As(_) => false,
            Ends::Core { isd } => from.iter().any(|&at| self.isd(at) == isd),
        };
        let reached = reached(&dst, &near) || reached(&src, &far);
        let core = if reached {
            Vec::new()
        } else {
            self.between_core(&far, &near)
        };
        Ok(Segments { up, core, down })
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

    /// The segments that join the ends to core ASes, and those core ASes.
    fn to_core(&self, ends: &Ends) -> (Vec<Segment>, Vec<usize>) {
        match *ends {
            Ends::As(at) => {
                let segments = self.below_core(at);
                let core = self.core_ends(at, &segments);
                (segments, core)
            }
            Ends::Core { isd } => {
                let core = |&at: &usize| self.graph.r#as(at).core && self.isd(at) == isd;
                (Vec::new(), (0..self.graph.len()).filter(core).collect())
            }
        }
    }

    /// Takes a link down or up and gives it a shape: answers made before are
    /// forgotten, so no path over a link that is down is given out any more.
    pub fn set_link(&mut self, link: usize, up: bool, shape: Shape) {
        if self.graph.set_link(link, up, shape) {
            self.forget();
        }
    }

    /// Makes segments anew if they are due. Nothing is made ahead of a
    /// request, so an idle service needs no timer.
    fn renew(&mut self, now: u64) {
        if self.stamp.is_due(now) {
            self.stamp = Stamp::new(now, self.lifetime);
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.answers.clear();
        self.kept = 0;
    }
}

#[cfg(test)]
mod tests;
