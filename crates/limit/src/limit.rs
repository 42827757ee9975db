//! What is wanted: limits of links, by device.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A limit on the traffic in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bit/s of Ethernet frames (with header, without preamble, gap and checksum), from
    /// [`MIN_RATE`](Self::MIN_RATE) to [`MAX_RATE`](Self::MAX_RATE), rounded down to whole bytes per
    /// second; or 0, with which nothing passes.
    pub rate: u64,
    /// Longest wait of a packet before it is sent: the queue holds `rate × queue` bits, at least
    /// [`least`](Self::least) bytes, two frames and two milliseconds of the rate. When it is full,
    /// packets are dropped.
    pub queue: Duration,
    /// Least length of the queue in bytes.
    pub least: u32,
    /// What passes at once after a pause: the rate of this time, at least two frames.
    pub burst: Duration,
}

impl Limit {
    /// Lowest rate but 0: 8 kbit/s.
    pub const MIN_RATE: u64 = 8_000;
    /// Highest rate: 100 Gbit/s.
    pub const MAX_RATE: u64 = 100_000_000_000;
    /// How long a packet may wait, unless said otherwise.
    pub const QUEUE: Duration = Duration::from_millis(50);
    /// Least length of a queue in bytes, unless said otherwise: four of the largest datagrams. What a
    /// program hands to the kernel at once, as a datagram or as a run of segments of up to 64 KiB without
    /// their headers, counts as one packet, and a queue that is shorter than it drops it as a whole. And
    /// it is more than the usual buffer of a socket (`net.core.wmem_default`), so that a program on this
    /// host waits before its packets are dropped.
    pub const LEAST: u32 = 256 << 10;

    /// Time whose rate may pass at once, unless said otherwise: with a shorter one the link would idle
    /// whenever the kernel's timer is later than that, as on a virtual machine whose processor is taken
    /// away for some milliseconds.
    pub const BURST: Duration = Duration::from_millis(10);

    /// A limit to `rate` bit/s, with the usual queue and burst.
    #[must_use]
    pub fn new(rate: u64) -> Self {
        Self {
            rate,
            queue: Self::QUEUE,
            least: Self::LEAST,
            burst: Self::BURST,
        }
    }

    /// Lets the rate of this time pass at once after a pause. The shorter it is, the less the rate is
    /// exceeded then, and the less of what late timers cost is made up for.
    #[must_use]
    pub fn with_burst(self, burst: Duration) -> Self {
        Self { burst, ..self }
    }

    /// Has a queue of this time, and no least length in bytes.
    #[must_use]
    pub fn with_queue(self, queue: Duration) -> Self {
        Self {
            queue,
            least: 0,
            ..self
        }
    }
}

/// The far end of a link: what its packets are recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Remote {
    /// The IP address.
    pub address: IpAddr,
    /// The UDP port; `None` for all packets of the address that no link with a port has.
    pub port: Option<u16>,
}

impl fmt::Display for Remote {
    /// The address, or address and port as a socket address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// Limits in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// What this host sends; `None` for no limit.
    pub egress: Option<Limit>,
    /// What this host receives; `None` for no limit.
    pub ingress: Option<Limit>,
}

impl Limits {
    /// The same limit in both directions.
    #[must_use]
    pub fn both(limit: Limit) -> Self {
        Self {
            egress: Some(limit),
            ingress: Some(limit),
        }
    }

    pub(crate) fn of(&self, direction: Direction) -> Option<Limit> {
        match direction {
            Direction::Egress => self.egress,
            Direction::Ingress => self.ingress,
        }
    }
}

/// The limits of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceLimits {
    /// The links.
    pub links: BTreeMap<Remote, Limits>,
    /// Limits of all other traffic together. Egress includes everything that the device sends, ingress
    /// IP packets alone.
    pub default: Limits,
}

impl DeviceLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_none = |limits: &Limits| limits.egress.is_none() && limits.ingress.is_none();
        is_none(&self.default) && self.links.values().all(is_none)
    }
}

/// The direction of traffic, as this host sees it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Sent.
    Egress,
    /// Received.
    Ingress,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Egress, Self::Ingress];

    /// As in requests and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose limit something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A link's.
    Link(Remote),
    /// That of all other traffic.
    Default,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(remote) => remote.fmt(f),
            Self::Default => f.write_str("other traffic"),
        }
    }
}

/// Counters of a limit, since it was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes sent, as the limit counts them.
    pub bytes: u64,
    /// Packets sent, each segment of an offloaded packet counted.
    pub packets: u64,
    /// Packets dropped because the queue was full. Wraps at 2³².
    pub drops: u32,
    /// Number of times that the limit delayed a packet. Wraps at 2³².
    pub overlimits: u32,
    /// Bytes waiting in the queue now.
    pub backlog: u32,
}
