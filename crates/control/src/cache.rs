//! Segments as hosts are sent them, each made once.

use std::sync::{Arc, OnceLock};

use hawser_segment::{Segment, SegmentError, Segments};
use scion_protobuf::proto::control_plane::v1::PathSegment;

use crate::pki::{Pki, PkiError};
use crate::segment::Plain;

/// A segment in all its forms.
#[derive(Debug)]
pub(crate) struct CachedSegment {
    /// As its ASes announce it.
    plain: Plain,
    /// As hosts, and the daemon here, read it.
    pub segment: Segment,
    /// As hosts are sent it. Empty until it is first requested: signing costs much more than all
    /// the rest, and the daemon needs no signatures.
    signed: OnceLock<PathSegment>,
}

impl CachedSegment {
    /// # Errors
    /// When `plain` is not a segment.
    pub fn new(plain: Plain) -> Result<Self, SegmentError> {
        Ok(Self {
            segment: Segment::from_message(&plain.unsigned())?,
            plain,
            signed: OnceLock::new(),
        })
    }

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
        let [up, core, down] = [&self.up, &self.core, &self.down]
            .map(|list| list.iter().map(|cached| cached.segment.clone()).collect());
        Segments { up, core, down }
    }
}
