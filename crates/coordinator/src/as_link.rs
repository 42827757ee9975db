//! Links to user ASes from other user ASes, and peering links.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::emulation::Emulation;
use crate::limits::Limits;
use crate::link::{LinkEnd, LinkId};

/// What the ASes of a link are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AsLinkKind {
    /// The second AS is a child of the first one: both are user ASes of one ISD.
    Child,
    /// They are peers, which may be any two ASes.
    Peer,
}

/// A link from a user AS to its child, or between two peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AsLink {
    /// The number.
    pub id: LinkId,
    /// What its ASes are to each other.
    pub kind: AsLinkKind,
    /// Both ends; the parent's is the first one.
    #[schema(min_items = 2, max_items = 2)]
    pub ends: [LinkEnd; 2],
    /// What its first end sends (egress), and its second one (ingress): each limits what it sends.
    pub limit: Limits,
    /// Longest wait of a packet in the queue of each limit, in microseconds, if it is not the usual one.
    #[schema(required)]
    pub queue_us: Option<u64>,
    /// Delay, jitter and loss.
    #[serde(flatten)]
    pub emulation: Emulation,
}
