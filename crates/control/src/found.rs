//! The segments that answer a lookup.

use std::sync::Arc;

use hawser_segment::Segments;

use crate::cache::CachedSegment;

/// The segments that answer a lookup.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// From core ASes to the source.
    pub up: Vec<Arc<CachedSegment>>,
    /// From core ASes on the destination's side to core ASes on the source's.
    pub core: Vec<Arc<CachedSegment>>,
    /// From core ASes to the destination.
    pub down: Vec<Arc<CachedSegment>>,
}

impl Found {
    /// The segments as hosts read them.
    pub fn segments(&self) -> Segments {
        let read = |list: &[Arc<CachedSegment>]| {
            list.iter().map(|cached| cached.segment.clone()).collect()
        };
        Segments {
            up: read(&self.up),
            core: read(&self.core),
            down: read(&self.down),
        }
    }
}
