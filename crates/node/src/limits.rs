//! What limits the links of an attachment point.

use std::collections::BTreeMap;

use hawser_bundle::LinkInfo;
use serde::Serialize;

/// The names of links whose limits are not in force, each with the reason.
pub type FailedLinks = BTreeMap<String, String>;

/// Puts limits into force and counts. The calls may block.
pub trait Limits: Send + Sync {
    /// Puts the limits of all links into force: those listed, and no others. Called again with the
    /// same limits, it changes nothing. Returns the links for which that failed: they keep no other from
    /// its limits.
    ///
    /// # Errors
    /// When no limits can be put into force.
    fn apply(&self, links: &LinkInfo) -> Result<FailedLinks, LimitsError>;

    /// What the links carried, by their names in [`LinkInfo`].
    ///
    /// # Errors
    /// When the counters cannot be read.
    fn usage(&self) -> Result<Vec<LinkUsage>, LimitsError>;

    /// Removes all limits that can be removed.
    ///
    /// # Errors
    /// When some are left.
    fn reset(&self) -> Result<(), LimitsError>;
}

/// The reason why limits are not in force, or their counters not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitsError(String);

impl LimitsError {
    /// An error with a reason in one line.
    pub fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// What one direction of a link carried since its limit was set up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Bytes of frames.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Bytes that wait in the queue now.
    pub backlog: u64,
}

/// What a link carried. A direction without a limit is not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkUsage {
    /// The name of the link in [`LinkInfo`].
    pub link: String,
    /// To the neighbour.
    pub egress: Option<Counters>,
    /// From the neighbour.
    pub ingress: Option<Counters>,
}
