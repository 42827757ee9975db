//! The torrents of a host: which there are, their state on disk, running them.
//!
//! - [`Torrents`]: which torrent runs when, without I/O.
//! - [`Record`]: what is kept of a torrent; [`StateFolder`]: the records on disk.
//! - [`Client`]: the torrents at work, over one [`Engine`].
//! - [`http`]: its page, its API, and Transmission's RPC; [`Remote`]: a client of the API.
//! - [`PortMapper`]: the port of IP peers, mapped by the gateway.
//! - [`FileStream`]: a file of a torrent, read while it is fetched.
//! - [`Prepared`]: the torrents of a daemon from its files; [`Running`]: these at work.
//! - `watch_folder`: torrents added from the files of a folder; `completion`: a program run for each that is
//!   complete.
//!
//! One task owns the torrents (`owner`). Each torrent that runs has a task (`runner`), whose failure is its
//! torrent's alone; content is moved and deleted by threads that may wait. All end when the client is
//! stopped, after what they have come to is saved.

mod addresses;
mod alternative;
mod choice;
mod client;
mod completion;
mod content;
mod engine;
mod error;
mod event;
mod fetch;
mod files;
mod groups;
mod history;
pub mod http;
mod metainfo;
mod network;
mod owner;
mod peer_limits;
mod peers;
mod port_mapping;
mod rates;
mod record;
mod remote;
mod renames;
mod rpc;
mod run;
mod runner;
mod settings;
mod shared;
mod state;
mod stream;
mod torrents;
mod trackers;
mod view;
mod watch_folder;
mod ways;
mod windows;

pub use self::addresses::PeerAddresses;
pub use self::alternative::{AlternativeChanges, AlternativeLimits, Schedule, ScheduleChanges};
pub use self::choice::{Choice, SeedChoice};
pub use self::client::{AddedTorrent, Client, NewTorrent, Source};
pub use self::engine::Engine;
pub use self::error::{ClientError, RunError};
pub use self::fetch::{Cookies, FETCH_TIMEOUT, FetchError, fetch_torrent, is_url};
pub use self::files::{
    FileChange, FileChanges, FileChoice, FilePriority, FileWish, Files, MAX_CHOSEN_FILES,
};
pub use self::groups::{
    BandwidthPriority, GroupChanges, GroupLimits, Groups, MAX_GROUP_BYTES, MAX_GROUPS, OuterChange,
};
pub use self::history::{MAX_SAMPLES, Sample};
pub use self::network::NetworkSettings;
pub use self::peer_limits::{PeerChanges, PeerLimits};
pub use self::peers::{Hop, PathView, PeerView};
pub use self::port_mapping::{GATEWAY_PORT, PortMapper, PortMapping};
pub use self::record::{
    Announcement, Dates, MAX_LABEL_BYTES, MAX_LABELS, MAX_NAME_BYTES, MAX_PEERS, Origin, Outcome,
    Pending, Record, SeedLimit, Totals, parse_hash,
};
pub use self::remote::{Method, Remote, RemoteError, own_token, publish, withdraw};
pub use self::run::{Options, Prepared, Running};
pub use self::runner::Live;
pub use self::settings::{
    AllLimits, IncompleteChange, IncompleteFolder, Limit, LimitChange, QueueChanges, QueueLimits,
    RateChange, RateChanges, RateLimit, RateLimits, Settings,
};
pub use self::state::{Damaged, StateError, StateFolder};
pub use self::stream::{FileReader, FileStream, StreamError};
pub use self::torrents::{
    Bounds, CommandError, MAX_TORRENTS, Merged, Move, Now, Order, Status, Torrents, Traffic,
    Transferred,
};
pub use self::view::{PeerNumbers, Rates, View};
pub use self::ways::{OpenWay, WayOpeners};

/// What is answered to requests for what the engine cannot do yet, after what that is.
pub const UNSUPPORTED: &str = "is not supported yet";
