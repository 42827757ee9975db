//! A SCION network: ASes, links, and the rate, delay, jitter and loss of each.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::IsdAsn;

/// Default MTU in bytes of a SCION packet, from the common header on: an Ethernet payload of 1500
/// bytes minus the IPv4 and UDP headers of the underlay.
pub(crate) const DEFAULT_MTU: u16 = 1472;

/// Default range of UDP ports that border routers deliver to directly, as in scionproto's topology
/// generator.
pub(crate) const DEFAULT_DISPATCHED_PORTS: (u16, u16) = (31000, 32767);

/// Default time that a full queue at a link's limit takes to drain.
const DEFAULT_QUEUE: Duration = Duration::from_millis(50);

/// A whole SCION network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The ASes, in the order of the topology file.
    pub ases: Vec<As>,
    /// The links, in the order of the topology file.
    pub links: Vec<Link>,
}

/// One AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct As {
    /// The number of the AS.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS of its ISD.
    pub core: bool,
    /// Whether it votes on updates of its ISD's trust root configuration.
    pub voting: bool,
    /// Whether it is authoritative: it always has the newest trust root configuration.
    pub authoritative: bool,
    /// Whether it is a certificate authority of its ISD.
    pub issuing: bool,
    /// The AS that issues its certificate; `None` if the file does not name one.
    pub cert_issuer: Option<IsdAsn>,
    /// The underlay between its hosts and border routers.
    pub underlay: Underlay,
    /// First and last UDP port that its border routers deliver to directly; `(0, 0)` if they
    /// deliver all packets to a dispatcher.
    pub dispatched_ports: (u16, u16),
    /// Largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// The note of the AS in path metadata.
    pub note: Option<String>,
}

/// The protocols that carry SCION packets from one router or host to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Underlay {
    /// UDP over IPv4.
    #[default]
    #[serde(rename = "UDP/IPv4")]
    Ipv4,
    /// UDP over IPv6.
    #[serde(rename = "UDP/IPv6")]
    Ipv6,
}

impl Underlay {
    /// Length of the IP and UDP headers in bytes, which SCION's MTUs do not include.
    pub fn headers(self) -> u16 {
        match self {
            Self::Ipv4 => 20 + 8,
            Self::Ipv6 => 40 + 8,
        }
    }
}

impl FromStr for Underlay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "UDP/IPv4" => Ok(Self::Ipv4),
            "UDP/IPv6" => Ok(Self::Ipv6),
            _ => Err(format!(
                "{text:?} is not an underlay: write UDP/IPv4 or UDP/IPv6"
            )),
        }
    }
}

impl fmt::Display for Underlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "UDP/IPv4",
            Self::Ipv6 => "UDP/IPv6",
        })
    }
}

/// A link between two ASes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The first end; the parent's end if the link is [`LinkKind::Child`].
    pub a: End,
    /// The second end; the child's end if the link is [`LinkKind::Child`].
    pub b: End,
    /// Its kind in SCION's routing.
    pub kind: LinkKind,
    /// The underlay between its two border routers.
    pub underlay: Underlay,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
    /// Rate, delay, jitter and loss, the same in both directions.
    pub shape: Shape,
}

/// One end of a link: an interface of an AS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The border router that has the interface, as the topology file names it (`A` in
    /// `1-ff00:0:110-A#1`); empty if the file does not name one. All ends of an AS without a name
    /// share one router. (scionproto's generator creates a router for each. The paths are the same,
    /// with fewer routers.)
    #[serde(default)]
    pub router: String,
    /// The interface's number in the AS, never 0.
    pub id: u16,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.router.is_empty() {
            write!(f, "{}#{}", self.isd_as, self.id)
        } else {
            write!(f, "{}-{}#{}", self.isd_as, self.router, self.id)
        }
    }
}

/// The kind of a link in SCION's routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkKind {
    /// Between two core ASes.
    Core,
    /// From a parent (end `a`) to its child (end `b`).
    Child,
    /// Between two ASes outside the hierarchy.
    Peer,
}

/// One of the two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The end `a`.
    A,
    /// The end `b`.
    B,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The opposite end.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Link {
    /// The end on the given side.
    pub fn end(&self, side: Side) -> &End {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

/// Rate, delay, jitter and loss of a link, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Limit in bit/s of Ethernet frames; `None` for no limit.
    pub rate: Option<u64>,
    /// Added one-way delay.
    #[serde(rename = "delay_us", with = "micros")]
    pub delay: Duration,
    /// Largest difference of a packet's delay from `delay`, above or below.
    #[serde(rename = "jitter_us", with = "micros")]
    pub jitter: Duration,
    /// Fraction of packets lost, 0 to 1.
    pub loss: f64,
    /// Size of the queue, as the time that a full queue takes to drain at `rate`.
    #[serde(rename = "queue_us", with = "micros")]
    pub queue: Duration,
}

impl Shape {
    /// Whether it has delay, jitter or loss, which the kernel does not make, unlike the rate.
    pub fn is_emulated(&self) -> bool {
        !self.delay.is_zero() || !self.jitter.is_zero() || self.loss > 0.0
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            queue: DEFAULT_QUEUE,
        }
    }
}

/// Serialises times as whole microseconds.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_micros().try_into().unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

impl Network {
    /// The AS with the number `isd_as`.
    pub fn find(&self, isd_as: IsdAsn) -> Option<&As> {
        self.ases.iter().find(|a| a.isd_as == isd_as)
    }

    /// The links of an AS, each with the side on which the AS is.
    pub fn links_of(&self, isd_as: IsdAsn) -> impl Iterator<Item = (&Link, Side)> {
        self.links.iter().flat_map(move |link| {
            [Side::A, Side::B]
                .into_iter()
                .filter(move |&side| link.end(side).isd_as == isd_as)
                .map(move |side| (link, side))
        })
    }

    /// The names of an AS's border routers, as in [`End::router`], in the order in which the links
    /// first mention them. Empty for an AS without links.
    pub fn routers(&self, isd_as: IsdAsn) -> Vec<&str> {
        let mut routers = Vec::new();
        for (link, side) in self.links_of(isd_as) {
            let router = link.end(side).router.as_str();
            if !routers.contains(&router) {
                routers.push(router);
            }
        }
        routers
    }

    /// The index of the link at an interface, with the side of the interface.
    pub fn link_at(&self, isd_as: IsdAsn, id: u16) -> Option<(usize, Side)> {
        self.links.iter().enumerate().find_map(|(index, link)| {
            [Side::A, Side::B].into_iter().find_map(|side| {
                let end = link.end(side);
                (end.isd_as == isd_as && end.id == id).then_some((index, side))
            })
        })
    }
}
