//! The segments that beaconing would provide to the ASes of a network, created on demand, and the
//! paths between any two of its ASes.

use std::collections::HashMap;
use std::sync::Arc;

use hawser_path::Path;
use hawser_segment::combine;
use hawser_topology::{IsdAsn, Network};

use crate::cache::{CachedSegment, Found};
use crate::graph::{Along, Graph};
use crate::routes::routes;
use crate::segment::{EntrySource, MAX_LIFETIME, Plain, Stamp};

/// Maximum number of segments between two core ASes, and between a core AS and an AS below it.
pub(crate) const SEGMENTS_PER_PAIR: usize = 20;

/// Maximum number of paths to one destination; the shortest are kept.
pub(crate) const MAX_PATHS: usize = 200;

/// A list of segments.
pub(crate) type CachedSegments = Vec<Arc<CachedSegment>>;

/// The segments of a network over the links that are up, with a cache.
pub(crate) struct Beacons {
    pub graph: Graph,
    /// Where segments come from.
    source: Source,
    pub stamp: Stamp,
    max_kept: usize,
    /// The cache, by first AS, last AS and kind of links.
    kept: HashMap<(usize, usize, Along), CachedSegments>,
    /// Number of segments in `kept`; a pair without segments counts as one.
    count: usize,
}

/// Where segments come from.
enum Source {
    /// They are created on demand, with what all ASes know.
    Created(Vec<EntrySource>),
    /// They are all in the cache.
    Published,
}

impl Beacons {
    /// The beacons of a network whose ASes know `sources` for their entries. Caches about `max_kept`
    /// segments of 2 KiB each.
    pub fn new(graph: Graph, sources: Vec<EntrySource>, stamp: Stamp, max_kept: usize) -> Self {
        Self {
            graph,
            source: Source::Created(sources),
            stamp,
            max_kept,
            kept: HashMap::new(),
            count: 0,
        }
    }

    /// The beacons of a network whose segments were created elsewhere: only those in `kept`.
    pub fn published(
        graph: Graph,
        kept: HashMap<(usize, usize, Along), CachedSegments>,
        stamp: Stamp,
    ) -> Self {
        Self {
            graph,
            source: Source::Published,
            stamp,
            max_kept: usize::MAX,
            kept,
            count: 0,
        }
    }

    /// Whether the segments were created elsewhere, so that dropped ones do not come back.
    pub fn is_published(&self) -> bool {
        matches!(self.source, Source::Published)
    }

    /// Drops all segments. Unless they were created elsewhere, they are created again on demand.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
    }

    /// All segments that can join two ASes: those from each AS to core ASes, and those between
    /// these core ASes.
    pub fn joining(&mut self, src: usize, dst: usize) -> Found {
        let (up, near) = self.core_side(src);
        let (down, far) = self.core_side(dst);
        let core = self.between(&far, &near, Along::Core);
        Found { up, core, down }
    }

    /// The segments between an AS and core ASes, and those core ASes.
    fn core_side(&mut self, at: usize) -> (CachedSegments, Vec<usize>) {
        if self.graph.is_core(at) {
            return (Vec::new(), vec![at]);
        }
        let isd = self.graph.isd_as(at).isd().to_u16();
        let segments = self.below_core(at, &self.graph.core_ases(Some(isd)));
        let firsts = segments.iter().map(|cached| cached.segment.first());
        let mut core: Vec<_> = firsts.filter_map(|first| self.graph.find(first)).collect();
        core.sort_unstable();
        core.dedup();
        (segments, core)
    }

    /// The down segments to an AS from those of `from` that are core ASes of its ISD. Empty if `to` is
    /// a core AS.
    ///
    /// scionproto's lookups ask for segments from the core ASes of the AS's own ISD only (its
    /// private/segment/segfetcher/splitter.go).
    pub fn below_core(&mut self, to: usize, from: &[usize]) -> CachedSegments {
        if self.graph.is_core(to) {
            return Vec::new();
        }
        let isd = |at| self.graph.isd_as(at).isd();
        let core = from.iter().copied();
        let core = core.filter(|&at| self.graph.is_core(at) && isd(at) == isd(to));
        self.between(&core.collect::<Vec<_>>(), &[to], Along::Children)
    }

    /// The segments in the direction of beaconing from each of `from` to each of `to`.
    pub fn between(&mut self, from: &[usize], to: &[usize], along: Along) -> CachedSegments {
        let mut segments = Vec::new();
        for &to in to {
            for &from in from.iter().filter(|&&from| from != to) {
                segments.extend(self.pair(from, to, along));
            }
        }
        segments
    }

    /// The segments from one AS to another.
    fn pair(&mut self, from: usize, to: usize, along: Along) -> CachedSegments {
        if let Some(kept) = self.kept.get(&(from, to, along)) {
            return kept.clone();
        }
        let Source::Created(sources) = &self.source else {
            return Vec::new();
        };
        let mut made = Vec::new();
        for route in routes(&self.graph, from, to, along, SEGMENTS_PER_PAIR) {
            let plain = Plain::new(&self.graph, sources, &route, self.stamp, along);
            match CachedSegment::new(plain) {
                Ok(segment) => made.push(Arc::new(segment)),
                // Happens only with an interface 0 in network.json, which topologies refuse.
                Err(reason) => tracing::error!("a segment is left out: {reason}"),
            }
        }
        if self.count >= self.max_kept {
            self.clear();
        }
        self.count += made.len().max(1);
        self.kept.insert((from, to, along), made.clone());
        made
    }
}

/// The paths between any two ASes of a network. They equal the answers of the control services in a
/// lab of the network while all links are up, but for the services that ASes announce there.
///
/// They cannot carry packets: the MACs of their hop fields are computed with a key of zeros.
pub struct NetworkPaths(Beacons);

impl NetworkPaths {
    /// The paths of a network.
    pub fn new(network: &Network) -> Self {
        let sources = vec![EntrySource::default(); network.ases.len()];
        let stamp = Stamp::new(0, MAX_LIFETIME);
        let graph = Graph::new(network.clone());
        Self(Beacons::new(graph, sources, stamp, usize::MAX))
    }

    /// The `limit` shortest paths (at most 200), in the daemon's order, with their announced
    /// metadata. Empty if an AS is not in the network, or both are the same.
    pub fn between(&mut self, src: IsdAsn, dst: IsdAsn, limit: usize) -> Vec<Path> {
        let (Some(from), Some(to)) = (self.0.graph.find(src), self.0.graph.find(dst)) else {
            return Vec::new();
        };
        let segments = self.0.joining(from, to).segments();
        let combined = combine(&segments, src, dst, limit.min(MAX_PATHS));
        combined.into_iter().map(|one| one.path).collect()
    }
}
