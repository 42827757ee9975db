//! SCION networks and their ASes on disk.
//!
//! A [`Network`] is a whole network: its ASes and its links, each with its rate, delay, jitter and
//! loss. It is read from a `.topo` file (scionproto's format with the link keys `rate`, `delay`,
//! `jitter`, `loss` and `queue` added) and kept as JSON beside the ASes' folders. An [`AsDir`] is
//! the folder of one AS: `topology.json` and `keys/` in scionproto's layout, and the state of its
//! links.

mod as_dir;
mod as_topology;
mod edit;
mod json_file;
mod load;
mod network;
mod ports;
mod quantity;
mod topo;
mod topology_json;

pub use hawser_address::IsdAsn;

pub use self::as_dir::{AsDir, LinkState, as_folder};
pub use self::edit::{NewAs, NewLink};
pub use self::json_file::{FileError, read_json, write_json};
pub use self::load::TopologyError;
pub use self::network::{As, End, Link, LinkKind, Network, Shape, Side, Underlay};
pub use self::quantity::{
    QuantityError, format_duration, format_loss, format_rate, parse_duration, parse_long_duration,
    parse_loss, parse_rate, parse_retry, rough_duration,
};
pub use self::topology_json::{AsTopology, Bfd, BorderRouter, Interface, LinkAddresses, LinkTo};
