//! How peers of a torrent are found: a [`Client`] asks trackers over HTTP, HTTPS and UDP, [`Trackers`]
//! keeps those of one torrent asked, and a [`Server`] is a tracker. [`DhtNodes`] are the
//! nodes of the DHT, one for each kind of address, which are searched for a torrent as long as it is there. [`LocalDiscovery`]
//! finds peers on the own network. A [`PeerFinder`] has all of these for the torrents of a program, and a
//! [`PeerSearch`] finds the peers of one torrent by them.
//!
//! When which tracker is asked, and what a tracker answers, is decided in `hawser-tracker`, without I/O.

mod datagrams;
mod dht;
mod error;
mod finder;
mod local;
mod mapped;
mod scion;
mod search;
mod serve;
#[cfg(test)]
mod testing;
mod tracker;
mod trackers;

pub use self::datagrams::{BoxFuture, Datagrams, MAX_DATAGRAM};
pub use self::dht::{
    DhtError, DhtHandle, DhtNode, DhtNodes, DhtSearch, DhtSearches, DhtSocket, DhtState, KeptError,
    KeptNodes, PeerPorts, SavedNodes, spawn_dht,
};
pub use self::error::AnnounceError;
pub use self::finder::{AllowedWays, PeerFinder, Sought};
pub use self::local::{LocalDiscovery, LocalError, LocalOptions, LocalSearch};
pub use self::mapped::MappedPort;
pub use self::scion::ScionDatagrams;
pub use self::search::PeerSearch;
pub use self::serve::{Monitor, ServeError, ServeOptions, Server};
pub use self::tracker::{Client, ClientOptions};
pub use self::trackers::Trackers;
