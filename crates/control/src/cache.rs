//! Segments as hosts are sent them, each made once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use scion_protobuf::proto::control_plane::v1::PathSegment;

use crate::graph::{Along, Graph};
use crate::pki::{Pki, PkiError};
use crate::routes::Route;
use crate::segment::{Segment, Stamp};
use crate::signed::Plain;

/// Most segments kept; about 2 KiB each.
const MAX_KEPT: usize = 2048;

/// A segment in all its forms.
#[derive(Debug)]
pub(crate) struct CachedSegment {
    /// As its ASes announce it.
    plain: Plain,
    /// As hosts, and the daemon here, read it.
    pub segment: hawser_segment::Segment,
    /// As hosts are sent it; empty until the first asks for it: signing costs much more than all
    /// the rest, and the daemon needs no signatures.
    signed: OnceLock<PathSegment>,
}

impl CachedSegment {
    /// The segment as hosts are sent it: signed, where the network has a PKI.
    pub fn message(&self, pki: Option<&mut Pki>) -> Result<PathSegment, PkiError> {
        let Some(pki) = pki else {
            return Ok(self.plain.unsigned());
        };
        if let Some(signed) = self.signed.get() {
            return Ok(signed.clone());
        }
        let signed = pki.sign(&self.plain)?;
        Ok(self.signed.get_or_init(|| signed).clone())
    }
}

/// Segments by their routes.
#[derive(Debug, Default)]
pub(crate) struct SegmentCache(HashMap<(Along, Route), Arc<CachedSegment>>);

impl SegmentCache {
    /// The segment over a route. Those along children carry peering entries.
    pub fn of(
        &mut self,
        graph: &Graph,
        keys: &[[u8; 16]],
        route: Route,
        stamp: Stamp,
        along: Along,
    ) -> Option<Arc<CachedSegment>> {
        let name = (along, route);
        if let Some(cached) = self.0.get(&name) {
            return Some(cached.clone());
        }
        let peering = along == Along::Children;
        let made = Segment::new(graph, keys, name.1.clone(), stamp, peering);
        let plain = Plain::new(graph, &made);
        let segment = match hawser_segment::Segment::from_message(&plain.unsigned()) {
            Ok(segment) => segment,
            Err(reason) => {
                // An interface 0 in network.json, which topologies refuse.
                tracing::error!("a segment is left out: {reason}");
                return None;
            }
        };
        if self.0.len() >= MAX_KEPT {
            self.0.clear();
        }
        let cached = Arc::new(CachedSegment {
            plain,
            segment,
            signed: OnceLock::new(),
        });
        self.0.insert(name, cached.clone());
        Some(cached)
    }

    /// Drops all segments, so that they are made anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
