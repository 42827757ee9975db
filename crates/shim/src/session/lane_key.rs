//! How lanes are told apart.

/// A lane, as this process numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey(pub u64);
