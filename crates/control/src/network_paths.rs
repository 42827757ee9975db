//! The paths between any two ASes of a network, for those who plan with it.

use std::collections::HashMap;
use std::sync::Arc;

use hawser_path::Path;
use hawser_segment::{Segments, combine};
use hawser_topology::{IsdAsn, Network};

use crate::cache::{CachedSegment, SegmentCache};
use crate::graph::{Along, Graph};
use crate::plane::{MAX_PATHS, SEGMENTS_PER_PAIR};
use crate::routes::{distances, routes};
use crate::segment::{MAX_LIFETIME, Stamp};

/// The paths that the control services of a lab of this network would answer with, all links up.
///
/// Nothing can be sent over them: their hop fields are made with a key of zeros.
pub struct NetworkPaths {
    graph: Graph,
    keys: Vec<[u8; 16]>,
    stamp: Stamp,
    cache: SegmentCache,
    /// From a core AS to another AS, made once.
    segments: HashMap<(usize, usize, Along), Vec<Arc<CachedSegment>>>,
}

impl NetworkPaths {
    /// Of this network.
    pub fn new(network: &Network) -> Self {
        Self {
            graph: Graph::new(network.clone()),
            keys: vec![[0; 16]; network.ases.len()],
            stamp: Stamp::new(0, MAX_LIFETIME),
            cache: SegmentCache::default(),
            segments: HashMap::new(),
        }
    }

    /// The `limit` shortest paths (at most 200), in the daemon's order, with all that is announced
    /// of them. None when an AS is not in the network, or both are the same.
    pub fn between(&mut self, src: IsdAsn, dst: IsdAsn, limit: usize) -> Vec<Path> {
        let (Some(from), Some(to)) = (self.graph.find(src), self.graph.find(dst)) else {
            return Vec::new();
        };
        let (up, near) = self.core_side(from);
        let (down, far) = self.core_side(to);
        let mut core = Vec::new();
        for &near in &near {
            for &far in far.iter().filter(|&&far| far != near) {
                core.extend(self.segments(far, near, Along::Core));
            }
        }
        let read = |list: Vec<Arc<CachedSegment>>| {
            list.iter().map(|cached| cached.segment.clone()).collect()
        };
        let segments = Segments {
            up: read(up),
            core: read(core),
            down: read(down),
        };
        let combined = combine(&segments, src, dst, limit.min(MAX_PATHS));
        combined.into_iter().map(|one| one.path).collect()
    }

    /// The segments that join an AS to core ASes, and those core ASes.
    fn core_side(&mut self, at: usize) -> (Vec<Arc<CachedSegment>>, Vec<usize>) {
        if self.graph.r#as(at).core {
            return (Vec::new(), vec![at]);
        }
        let (mut segments, mut core) = (Vec::new(), Vec::new());
        for from in 0..self.graph.len() {
            if !self.graph.r#as(from).core {
                continue;
            }
            let found = self.segments(from, at, Along::Children);
            if !found.is_empty() {
                core.push(from);
                segments.extend(found);
            }
        }
        (segments, core)
    }

    fn segments(&mut self, from: usize, to: usize, along: Along) -> Vec<Arc<CachedSegment>> {
        if let Some(known) = self.segments.get(&(from, to, along)) {
            return known.clone();
        }
        let distance = distances(&self.graph, to, along);
        let found = routes(&self.graph, from, to, along, &distance, SEGMENTS_PER_PAIR);
        let (graph, keys, stamp) = (&self.graph, &self.keys, self.stamp);
        let found: Vec<_> = found
            .into_iter()
            .filter_map(|route| self.cache.of(graph, keys, route, stamp, along))
            .collect();
        self.segments.insert((from, to, along), found.clone());
        found
    }
}
