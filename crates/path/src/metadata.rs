//! The announcements of ASes about a path.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use hawser_address::IsdAsn;
use serde::{Deserialize, Serialize, Serializer};

/// What the control plane knows about a path. Each list is empty or has the length that
/// scionproto's `daemon.proto` gives it; `n` is the number of interfaces on the path.
///
/// In serde, the names are those of [`show`](crate::show).
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metadata {
    /// Bytes of the largest SCION packet that fits, from the common header on.
    pub mtu: u16,
    /// When the path expires, in seconds of Unix time.
    #[serde(skip)]
    pub expiry: u64,
    /// Entry `i`: delay between interfaces `i` and `i + 1`, `None` where not announced. Length `n -
    /// 1`.
    #[serde(serialize_with = "as_nanoseconds")]
    pub latency: Vec<Option<Duration>>,
    /// Entry `i`: bit/s between interfaces `i` and `i + 1`, `None` where not announced. Length `n -
    /// 1`.
    pub bandwidth: Vec<Option<u64>>,
    /// Entry `i`: location of the router of interface `i`, `None` where not announced. Length `n`.
    pub geo: Vec<Option<Geo>>,
    /// Entry `i`: what the link between interfaces `2i` and `2i + 1` is. Length `n / 2`.
    #[serde(rename = "link_type")]
    pub link_types: Vec<LinkType>,
    /// Entry `i`: hops inside the AS between interfaces `2i + 1` and `2i + 2`. Length `n / 2 - 1`.
    pub internal_hops: Vec<u32>,
    /// Entry `i`: the note of the `i`-th AS on the path, empty if it has none. Length `n / 2 + 1`.
    pub notes: Vec<String>,
    /// The services that ASes on the path announce, by AS; ASes without any are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub discovery: BTreeMap<IsdAsn, Discovery>,
}

/// Nanoseconds, -1 where not announced.
fn as_nanoseconds<S: Serializer>(
    latency: &[Option<Duration>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let nanoseconds = |one: Duration| i64::try_from(one.as_nanos()).unwrap_or(i64::MAX);
    serializer.collect_seq(latency.iter().map(|one| one.map_or(-1, nanoseconds)))
}

/// The addresses of services that an AS announces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Discovery {
    /// Its control services.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub control_services: Vec<SocketAddr>,
    /// Its discovery services.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub discovery_services: Vec<SocketAddr>,
}

/// The location of a border router, as its AS announces it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Geo {
    /// Degrees north (WGS 84).
    pub latitude: f32,
    /// Degrees east (WGS 84).
    pub longitude: f32,
    /// Civic address; empty if none is announced.
    pub address: String,
}

/// The network underneath a link between two ASes, as announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LinkType {
    /// Not announced.
    #[default]
    Unset,
    /// A direct physical connection.
    Direct,
    /// A connection with local routing or switching.
    MultiHop,
    /// A connection over the public Internet.
    OpenNet,
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The serde names are scionproto's.
        self.serialize(f)
    }
}
