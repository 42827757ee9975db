//! Cached segments, in the forms that hosts and the daemon need.

use std::sync::{Arc, OnceLock};

use hawser_proto::control_plane::PathSegment;
use hawser_segment::{Segment, SegmentError, Segments};

use crate::pki::{Pki, PkiError};
use crate::segment::Plain;

/// A segment in several forms, each created once.
#[derive(Debug)]
pub(crate) struct CachedSegment {
    /// The unsigned segment; `None` if it came with its signatures.
    plain: Option<Plain>,
    /// The parsed segment, which the daemon combines to paths.
    pub segment: Segment,
    /// The signed message for hosts. Empty until it is first requested: signing costs much more
    /// than the rest, and the daemon needs no signatures.
    signed: OnceLock<PathSegment>,
}

impl CachedSegment {
    /// # Errors
    /// When `plain` is not a valid segment.
    pub fn new(plain: Plain) -> Result<Self, SegmentError> {
        Ok(Self {
            segment: Segment::from_message(&plain.unsigned())?,
            plain: Some(plain),
            signed: OnceLock::new(),
        })
    }

    /// A segment that came with its signatures.
    ///
    /// # Errors
    /// When it is not a valid segment.
    pub fn signed(message: PathSegment) -> Result<Self, SegmentError> {
        Ok(Self {
            segment: Segment::from_message(&message)?,
            plain: None,
            signed: OnceLock::from(message),
        })
    }

    /// The signed message, by signers that `pki` has loaded. It is not kept.
    pub fn signed_by(&self, pki: &Pki) -> Result<PathSegment, PkiError> {
        match (self.signed.get(), &self.plain) {
            (Some(signed), _) => Ok(signed.clone()),
            (None, Some(plain)) => pki.sign_loaded(plain),
            // One without signatures has what they are made from.
            (None, None) => Ok(PathSegment::default()),
        }
    }

    /// The message for hosts, which is signed if the network has a PKI.
    pub fn message(&self, pki: Option<&mut Pki>) -> Result<PathSegment, PkiError> {
        if let Some(signed) = self.signed.get() {
            return Ok(signed.clone());
        }
        // One without signatures has what they are made from.
        let Some(plain) = &self.plain else {
            return Ok(PathSegment::default());
        };
        let Some(pki) = pki else {
            return Ok(plain.unsigned());
        };
        let signed = pki.sign(plain)?;
        Ok(self.signed.get_or_init(|| signed).clone())
    }
}

/// The result of a segment lookup.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Segments from core ASes to the source.
    pub up: Vec<Arc<CachedSegment>>,
    /// Segments from core ASes on the destination's side to core ASes on the source's.
    pub core: Vec<Arc<CachedSegment>>,
    /// Segments from core ASes to the destination.
    pub down: Vec<Arc<CachedSegment>>,
}

impl Found {
    /// The parsed segments.
    pub fn segments(&self) -> Segments {
        let [up, core, down] = [&self.up, &self.core, &self.down]
            .map(|list| list.iter().map(|cached| cached.segment.clone()).collect());
        Segments { up, core, down }
    }
}
