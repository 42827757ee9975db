//! The BitTorrent engine.
//!
//! A torrent is fetched from and served to *path-level peers*: every pair of a peer's address and a
//! path to it is a separate peer with its own connection (001, section IV). IP peers are reached on
//! one path, over TCP or uTP, plain or encrypted (MSE).
//!
//! - [`Metainfo`], [`create()`]: `.torrent` files of version 1, 2 and both (BEP 3, BEP 52).
//! - [`Resolve`]: fetches what a `.torrent` file says from peers, for a magnet link (BEP 9).
//! - [`Download`]: fetches a torrent over the paths a strategy selects, verified piece by piece.
//!   [`Selection`] says which of its files, and in which order.
//! - [`Session`]: any number of torrents over the same sockets.
//! - [`Seed`]: serves a torrent to every peer that connects, and chooses paths to peers that let it
//!   choose.
//!
//! A download *verifies* what is on disk, on a thread that may wait, *fetches* the rest, *seeds*
//! over the same connections if the options say so, and *closes* them; a seeder verifies before
//! [`Seed::start`] returns, then seeds. Either ends when its goal or a limit is reached, when it
//! fails, or when it is stopped or dropped. One task owns a torrent (`swarm`). Each connection has
//! a task (`peer`), and so have each dial, the watch of the paths to each peer, the acceptance of
//! connections, each run of a web seed (`web`) and the check of served files; up to four threads
//! write and hash. All of them end with their owner.
//!
//! The owner's state is not locked. It shares two things with the tasks of connections: the pieces
//! that are offered, under a `RwLock` for all of them, and the requests that a peer waits for,
//! under a `Mutex` for each connection. Neither is held while the other is taken, at an await or
//! during I/O. What waits for the disk is bounded by the budget of the process (`hawser-store`).

mod candidates;
mod close;
mod crowd;
mod dht;
mod download;
mod error;
mod failed;
mod files;
mod gate;
mod limits;
mod network;
mod options;
mod peer;
mod piece_map;
mod pipeline;
mod progress;
mod quic;
mod rate;
mod reason;
mod recording;
mod requests;
mod resolve;
mod seed;
mod selection;
mod session;
#[cfg(test)]
mod simulation;
mod source;
mod super_seeding;
mod swarm;
mod tcp;
#[cfg(test)]
mod testing;
mod transport;
mod utp;
mod web;

use hawser_merkle as merkle;
use hawser_metainfo::{layout, pieces};
use hawser_picker as picker;
use hawser_wire::{self as wire, bitfield};

pub use hawser_address::{PeerAddr, PeerAddrError, ScionAddr};
pub use hawser_manager::{PathOptions, SelectBy, SelectByParseError};
pub use hawser_mse::{Policy as EncryptionPolicy, PolicyParseError as EncryptionPolicyParseError};
pub use hawser_session::SharedPolicy;
pub use hawser_store::{Allocation, FileOptions, PART_SUFFIX, StoreError, part_name};

pub use self::dht::DhtContacts;
pub use self::download::Download;
pub use self::error::{ContentSource, DownloadError, RenameError, SeedError, SelectError};
pub use self::files::{FileProgress, FilesProgress};
pub use self::limits::{SeedEnd, SeedLimits, Seeded};
pub use self::network::Network;
pub use self::options::{DownloadOptions, SeedOptions};
pub use self::piece_map::PieceMap;
pub use self::progress::{
    ChangedFile, LeftPath, PathProgress, PathState, PathSummary, PeerState, Phase, Progress,
    SeedPeer, SeedProgress, Summary, WebSeedProgress, WebSeedState,
};
pub use self::quic::ALPN;
pub use self::rate::{BandwidthPriority, OuterLimits, RateGroup, RateLimits};
pub use self::reason::{ChoiceReason, Decision};
pub use self::recording::recorded_files;
pub use self::resolve::{Resolve, ResolveError, ResolveProgress, Resolved};
pub use self::seed::Seed;
pub use self::selection::{PieceOrder, Priority, Selection, SelectionError, Window};
pub use self::session::Session;
pub use self::source::{FoundPeers, PeerSource};
pub use self::tcp::{IpTransports, IpTransportsParseError, ListenError, Listener};
pub use hawser_metainfo::layout::part_file;
pub use hawser_metainfo::{
    self as metainfo, CreateError, CreateOptions, InfoHash, Metainfo, MetainfoError, Pieces,
    Version, create, is_file_name,
};
pub use hawser_wire::new_peer_id;
