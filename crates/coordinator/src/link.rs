//! Links.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::describe::{Address, IsdAs};
use crate::emulation::Emulation;
use crate::limits::Limits;

/// The number of a link; never given again. Links to user ASes and those between attachment points
/// share the numbers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
#[schema(maximum = 18446744073709551615u64)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One end of a link. Where only limits are set, and ASes are not configured, parts are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkEnd {
    /// The AS.
    #[schema(value_type = IsdAs)]
    pub isd_as: IsdAsn,
    /// The number of the interface there.
    #[serde(default)]
    #[schema(required)]
    pub interface: Option<u16>,
    /// The border router's address for the link.
    #[serde(default)]
    #[schema(required, value_type = Option<Address>)]
    pub ip: Option<IpAddr>,
    /// Its UDP port for the link.
    #[serde(default)]
    #[schema(required)]
    pub port: Option<u16>,
    /// The largest SCION packet that fits what carries the link from here, as the AS's machine has found it;
    /// none if it takes as much as Ethernet does, or nothing is known.
    #[serde(default)]
    #[schema(required)]
    pub mtu: Option<u16>,
}

impl LinkEnd {
    /// The border router's address and UDP port, if both are known.
    #[must_use]
    pub fn underlay(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip?, self.port?))
    }
}

/// A link from an attachment point to a user AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The number.
    pub id: LinkId,
    /// The attachment point's end.
    pub attachment_point: LinkEnd,
    /// The user AS's end.
    pub user_as: LinkEnd,
    /// The attachment point's network interface, if it is not that of the machine's route.
    #[serde(default)]
    pub device: Option<String>,
    /// Longest wait of a packet in the queue of each limit, in microseconds; `None` for the usual one.
    #[serde(default)]
    pub queue_us: Option<u64>,
    /// Delay, jitter and loss.
    #[serde(flatten)]
    pub emulation: Emulation,
    /// What an administrator allows.
    pub maximum: Limits,
    /// What the user wants; never above the maximum. `None` is as much as the maximum allows.
    pub limit: Limits,
}

impl Link {
    /// The limits that are to be in force.
    #[must_use]
    pub fn wanted(&self) -> Limits {
        self.limit.min(self.maximum)
    }
}

/// A link between two attachment points; not limited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CoreLink {
    /// The number.
    pub id: LinkId,
    /// Both ends.
    #[schema(min_items = 2, max_items = 2)]
    pub ends: [LinkEnd; 2],
    /// Delay, jitter and loss.
    #[serde(flatten)]
    pub emulation: Emulation,
}

/// Links whose limits are not in force, each with the reason as one line.
pub type FailedLinks = hawser_limit::FailedLinks<LinkId>;

/// What a link carried to the user AS (egress) and from it (ingress).
pub type LinkUsage = hawser_limit::LinkUsage<LinkId>;
