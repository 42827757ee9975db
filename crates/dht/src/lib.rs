//! The distributed hash table (DHT) of BitTorrent: peers of a torrent are found without a tracker,
//! by asking nodes whose ids are ever nearer to the info-hash.
//!
//! Sources: BEP 5 (Kademlia and its messages), BEP 32 (IPv6), BEP 42 (ids that follow from
//! addresses), BEP 43 (read-only nodes). Pure: no I/O, no clock; a caller passes datagrams and the
//! time to a [`Dht`], and carries out its [`Output`]s. One `Dht` serves one kind of [`Address`]:
//! IPv4, IPv6 or SCION, each of which is a DHT of its own.
//!
//! # Use
//!
//! After each call of a `Dht`, [`Dht::poll`] until it returns `None`: datagrams to send, peers
//! found, searches finished. Call [`Dht::advance`] at [`Dht::next_due`]. Save
//! [`Dht::nodes`] and [`Dht::id`], as bytes by [`Saved`], and pass them to the next `Dht`.
//!
//! Other nodes forget an announced peer after 30 minutes ([`PEER_LIFETIME`]). Start a search with
//! an [`Announce`] again every [`ANNOUNCE_INTERVAL`] while the torrent is active.
//!
//! # SCION
//!
//! No BEP describes a DHT over SCION. Messages are those of BEP 5, with two differences: nodes are
//! under the key `nodes_scion`, each entry the id (20 bytes), the length of the address (1 byte: 14
//! or 26) and the compact address (ISD-AS, IP, port); `values` and `ip` hold compact addresses of
//! the same form. The id of a node follows from its ISD-AS and its IP address as
//! [`Address::id_hash`] says.
//!
//! # Hostile nodes
//!
//! - An answer counts only from the address that was asked and with the transaction id that was
//!   sent; transaction ids and tokens cannot be predicted.
//! - A node enters the routing table only after it has answered. The table holds one node of a
//!   host, a bucket one of a network (two over SCION). At most half of a bucket, and of an answer
//!   where there are others, are nodes whose ids do not follow from their addresses (BEP 42).
//! - A search ends with the 8 nearest nodes, one of a network, and at most 4 others whose ids do
//!   not follow from their addresses. Nodes nearer to the target than the size of the DHT makes
//!   plausible, and nodes that name others that do not answer, come last.
//! - Stored peers, queries answered, searches and their candidates are bounded, the first two also
//!   per network.

mod address;
mod config;
mod dht;
mod external;
#[cfg(test)]
mod fuzz;
mod id;
mod limiter;
mod lookup;
mod message;
#[cfg(test)]
mod operations;
mod output;
mod queries;
mod saved;
mod search;
mod searches;
mod secret;
mod secure;
mod server;
#[cfg(test)]
mod simulation;
mod store;
mod table;
mod tokens;
mod upkeep;

pub use self::address::Address;
pub use self::config::{Announce, Config};
pub use self::dht::Dht;
pub use self::id::Id;
pub use self::output::{Counters, Output, SearchError, SearchId, Stats, Summary};
pub use self::saved::{MAX_SAVED_BYTES, Saved, SavedError};
pub use self::secure::{Standing, secure_id, standing};
pub use self::store::{ANNOUNCE_INTERVAL, PEER_LIFETIME};
