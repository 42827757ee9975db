//! How new paths from a source must be.

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The source may answer from what it has.
    Cached,
    /// The source must look for new paths.
    New,
}
