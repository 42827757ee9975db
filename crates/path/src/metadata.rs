//! What ASes announce about a path.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use sciparse::identifier::isd_asn::IsdAsn;
use serde::{Deserialize, Serialize, Serializer};

/// What the control plane knows about a path. The lists have the lengths that scionproto's
/// `daemon.proto` gives them; with `n` interfaces on the path, each is that long or empty.
///
/// In serde, the names are those of [`show`](crate::show).
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metadata {
    /// Bytes of the largest SCION packet that fits, from the common header on.
    pub mtu: u16,
    /// When the path expires, in seconds of Unix time.
    #[serde(skip)]
    pub expiry: u64,
    /// Entry `i`: delay between interfaces `i` and `i + 1`, `None` where not announced; `n - 1`.
    #[serde(serialize_with = "as_nanoseconds")]
    pub latency: Vec<Option<Duration>>,
    /// Entry `i`: bit/s between interfaces `i` and `i + 1`, `None` where not announced; `n - 1`.
    pub bandwidth: Vec<Option<u64>>,
    /// Entry `i`: where the router of interface `i` stands, `None` where not announced; `n`.
    pub geo: Vec<Option<Geo>>,
    /// Entry `i`: what the link between interfaces `2i` and `2i + 1` is; `n / 2`.
    #[serde(rename = "link_type")]
    pub link_types: Vec<LinkType>,
    /// Entry `i`: hops inside the AS between interfaces `2i + 1` and `2i + 2`; `n / 2 - 1`.
    pub internal_hops: Vec<u32>,
    /// Entry `i`: the note of the `i`-th AS on the path, empty if it has none; `n / 2 + 1`.
    pub notes: Vec<String>,
    /// The services that ASes on the path announce, by AS; only those that announce any.
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

/// Where the services of an AS are, as it announces it for others to find them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Discovery {
    /// Its control services.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub control_services: Vec<SocketAddr>,
    /// Its discovery services.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub discovery_services: Vec<SocketAddr>,
}

/// Where a border router stands, as its AS announces it.
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
        // Serde has scionproto's words.
        self.serialize(f)
    }
}
