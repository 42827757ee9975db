//! A SCION network: ASes, links, and what each link behaves like.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{IsdAsn, TopologyError, isd_as_text, isd_as_text_option, ready, topo};

/// Bytes of a SCION packet, from the common header on, that a link carries when nothing else is
/// said: an Ethernet frame of 1500 bytes less the IPv4 and UDP headers of the underlay.
pub(crate) const DEFAULT_MTU: u16 = 1472;

/// UDP ports that border routers deliver to directly when nothing else is said, as in scionproto's
/// topology generator.
pub(crate) const DEFAULT_DISPATCHED_PORTS: (u16, u16) = (31000, 32767);

/// Bytes of a `.topo` file that are read at most: some 100,000 links.
const LARGEST_FILE: u64 = 16 << 20;

/// Time a full queue at a link's limit takes to drain when nothing else is said.
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
    /// Its number.
    #[serde(with = "isd_as_text")]
    pub isd_as: IsdAsn,
    /// Whether it is a core AS of its ISD.
    pub core: bool,
    /// Whether it votes on updates of its ISD's trust root configuration.
    pub voting: bool,
    /// Whether it has the newest trust root configuration at all times.
    pub authoritative: bool,
    /// Whether it is a certificate authority of its ISD.
    pub issuing: bool,
    /// The AS that issues its certificate, where the file names one.
    #[serde(with = "isd_as_text_option")]
    pub cert_issuer: Option<IsdAsn>,
    /// What its hosts and border routers speak among themselves.
    pub underlay: Underlay,
    /// First and last UDP port that its border routers deliver to directly; `(0, 0)` where all that
    /// comes in goes to a dispatcher.
    pub dispatched_ports: (u16, u16),
    /// Largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// What the AS says of itself in path metadata.
    pub note: Option<String>,
}

/// What carries SCION packets from one router or host to the next.
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
    /// Bytes that its IP and UDP headers take, which no MTU of SCION counts.
    pub fn headers(self) -> u16 {
        match self {
            Self::Ipv4 => 20 + 8,
            Self::Ipv6 => 40 + 8,
        }
    }
}

impl FromStr for Underlay {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "UDP/IPv4" => Ok(Self::Ipv4),
            "UDP/IPv6" => Ok(Self::Ipv6),
            _ => Err(()),
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
    /// One end; of a [`LinkKind::Child`] link the parent's.
    pub a: End,
    /// The other end; of a [`LinkKind::Child`] link the child's.
    pub b: End,
    /// What the link is in SCION's routing.
    pub kind: LinkKind,
    /// What its two border routers speak over it.
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
    #[serde(with = "isd_as_text")]
    pub isd_as: IsdAsn,
    /// The border router that has the interface, as the topology file names it (`A` in
    /// `1-ff00:0:110-A#1`); empty where it names none. All ends of an AS that name none are at one
    /// router. (scionproto's generator makes a router of its own for each of them. The paths are
    /// the same, and networks stay small.)
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

/// What a link is in SCION's routing.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end `a`.
    A,
    /// The end `b`.
    B,
}

impl Side {
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

/// What a link behaves like, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Limit in bit/s of Ethernet frames; none means as fast as the machine.
    pub rate: Option<u64>,
    /// Added one-way delay.
    #[serde(rename = "delay_us", with = "micros")]
    pub delay: Duration,
    /// How far the delay of a packet may lie from `delay`, either way.
    #[serde(rename = "jitter_us", with = "micros")]
    pub jitter: Duration,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Time a full queue at the limit takes to drain; it sizes the queue.
    #[serde(rename = "queue_us", with = "micros")]
    pub queue: Duration,
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

/// Times as whole microseconds in JSON.
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
    /// Reads a topology in scionproto's `.topo` format.
    ///
    /// Accepted beyond it: the link keys `rate`, `delay`, `jitter`, `loss` and `queue`, and the AS
    /// key `note`. Of its keys `bw`, `control_servers` and `test_dispatcher` change nothing: its
    /// generator does not heed the first two either, and the third is about its containers. Unknown
    /// keys are refused. Ends without an interface number (`1-ff00:0:110`) get the lowest one of
    /// their AS that is free, in the order of the file.
    pub fn parse(topo: &str) -> Result<Self, TopologyError> {
        topo::parse(topo)
    }

    /// Reads a `.topo` file.
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        let failed = |reason: String| TopologyError::File {
            path: path.to_owned(),
            reason,
        };
        let file = std::fs::File::open(path).map_err(|e| failed(e.to_string()))?;
        let mut text = String::new();
        file.take(LARGEST_FILE + 1)
            .read_to_string(&mut text)
            .map_err(|e| failed(e.to_string()))?;
        if text.len() as u64 > LARGEST_FILE {
            return Err(failed(format!("it has more than {LARGEST_FILE} bytes")));
        }
        Self::parse(&text)
    }

    /// Writes the network in the `.topo` format, so that [`Network::parse`] reads the same one
    /// back.
    pub fn to_topo(&self) -> String {
        topo::write(self)
    }

    /// A topology that comes with hawser: `fig4`, `fig7a` or `fig9` (001).
    pub fn ready(name: &str) -> Option<Self> {
        ready::text(name).and_then(|text| Self::parse(text).ok())
    }

    /// The names that [`Network::ready`] knows.
    pub fn ready_names() -> impl Iterator<Item = &'static str> {
        ready::names()
    }

    /// Reads what [`Network::write_json`] wrote.
    pub fn read_json(path: &Path) -> Result<Self, TopologyError> {
        let failed = |reason: String| TopologyError::File {
            path: path.to_owned(),
            reason,
        };
        let bytes = std::fs::read(path).map_err(|e| failed(e.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|e| failed(e.to_string()))
    }

    /// Writes the network as JSON.
    pub fn write_json(&self, path: &Path) -> Result<(), TopologyError> {
        let failed = |reason: String| TopologyError::File {
            path: path.to_owned(),
            reason,
        };
        let bytes = serde_json::to_vec_pretty(self).map_err(|e| failed(e.to_string()))?;
        std::fs::write(path, bytes).map_err(|e| failed(e.to_string()))
    }

    /// The AS of that number.
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

    /// The border routers of an AS, as [`End::router`] has them, in the order in which the links
    /// first mention them. An AS without links has none.
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

    /// The link at an interface, with the side on which the interface is.
    pub fn link_at(&self, isd_as: IsdAsn, id: u16) -> Option<(usize, Side)> {
        self.links.iter().enumerate().find_map(|(index, link)| {
            [Side::A, Side::B].into_iter().find_map(|side| {
                let end = link.end(side);
                (end.isd_as == isd_as && end.id == id).then_some((index, side))
            })
        })
    }
}
