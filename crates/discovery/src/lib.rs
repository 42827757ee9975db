//! How peers of a torrent are found: a [`Client`] asks trackers over HTTP, HTTPS and UDP, [`Trackers`]
//! keeps those of one torrent asked, and a [`Server`] is a tracker. [`DhtNodes`] are the
//! nodes of the DHT, one for each kind of address, which are searched for a torrent as long as it is there. [`LocalDiscovery`]
//! finds peers on the own network.
//!
//! When which tracker is asked, and what a tracker answers, is decided in `hawser-tracker`, without I/O.

mod datagrams;
mod dht;
mod error;
mod local;
mod scion;
mod serve;
#[cfg(test)]
mod testing;
mod tracker;
mod trackers;

pub use self::datagrams::{BoxFuture, Datagrams, MAX_DATAGRAM};
pub use self::dht::{
    DhtError, DhtHandle, DhtNodes, DhtSearch, DhtSearches, DhtSocket, DhtState, KeptError,
    KeptNodes, PeerPorts, SavedNodes, spawn_dht,
};
pub use self::error::AnnounceError;
pub use self::local::{LocalDiscovery, LocalError, LocalSearch};
pub use self::scion::ScionDatagrams;
pub use self::serve::{Monitor, ServeError, ServeOptions, Server};
pub use self::tracker::{Client, ClientOptions};
pub use self::trackers::Trackers;
