//! SCION networks and their ASes on disk.
//!
//! A [`Network`] is a whole network: its ASes and its links, each with its rate, delay, jitter and
//! loss. It is read from a `.topo` file (scionproto's format with the link keys `rate`, `delay`,
//! `jitter`, `loss` and `queue` added) and kept as JSON beside the ASes' folders. An [`AsDir`] is
//! the folder of one AS: `topology.json` and `keys/` in scionproto's layout, and the state of its
//! links.

mod as_dir;
mod as_topology;
mod error;
mod load;
mod network;
mod ports;
mod quantity;
mod ready;
mod topo;
mod topology_json;

pub mod isd_as_text;

pub use sciparse::identifier::isd_asn::IsdAsn;

pub use self::as_dir::{AsDir, AsDirError, LinkState, as_folder};
pub use self::as_topology::{AsTopology, Bfd, BorderRouter, Interface, LinkTo};
pub use self::error::TopologyError;
pub use self::network::{As, End, Link, LinkKind, Network, Shape, Side, Underlay};
pub use self::quantity::{
    QuantityError, format_duration, format_loss, format_rate, parse_duration, parse_loss,
    parse_rate,
};
