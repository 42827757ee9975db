//! Transmission's RPC without I/O: the body of a request becomes the body of its answer, over a
//! [`Client`] that the daemon implements. With it, programs that control Transmission control hawser:
//! transmission-remote, Flood, TrguiNG, Sonarr and others.
//!
//! To serve it at `/transmission/rpc`: check the password, if there is one; have [`Session::check`]
//! check the header, for requests of any method of HTTP, and answer with its [`Challenge`] if it
//! refuses; give the body of a POST to [`answer`]. Refuse a body longer than [`MAX_BODY`] before it is
//! read.
//!
//! Both forms of requests are answered, each in its own: the one of Transmission up to 4.0 (`method`,
//! `arguments`, `tag`) and JSON-RPC 2.0 as of Transmission 4.1 (rpc-version-semver 6.0.0). A name may be
//! spelled in camelCase, kebab-case or snake_case in either. Batches are refused.
//!
//! Where this differs from Transmission 4.1: an argument of a wrong type is an error that names the
//! argument; a field or an id that is repeated counts once; the old form's answer to a method that does not
//! exist is `method name not recognized`, as before 4.1; block lists are not supported.
//!
//! Source: Transmission's `docs/rpc-spec.md` of 4.0.6 and 4.1.

mod answer;
mod args;
mod change;
mod client;
mod csrf;
mod error;
mod fields;
mod ids;
mod json;
mod lists;
mod methods;
mod names;
mod parts;
mod request;
mod session_view;
mod settings;
mod torrent;
mod tracker_url;

use std::time::Duration;

pub use self::answer::answer;
pub use self::change::{Add, Added, Change, Files, GroupChange, Setting, Source, Transport};
pub use self::client::{Action, Client, IpProtocol};
pub use self::csrf::{Challenge, RPC_VERSION_HEADER, SESSION_ID_HEADER, Session};
pub use self::error::CallError;
pub use self::ids::{Ids, TorrentId, TorrentRef};
pub use self::parts::{
    FileView, Outcome, PeerFlags, PeerView, Priority, RequestState, Requests, TrackerView,
};
pub use self::session_view::{
    Adding, AlternativeLimits, Count, Encryption, Folders, GroupView, Network, Queues, SeedLimits,
    SessionView, Space, SpeedLimits, Stats, Totals,
};
pub use self::torrent::{
    Content, Dates, Detail, ErrorKind, Limit, Options, Parts, Progress, SeedMode, Sources, State,
    Swarm, Texts, TorrentError, TorrentView, Traffic,
};

/// The most bytes of a request: metainfo of 24 MiB in base64. An answer has no bound but the torrents
/// there are.
pub const MAX_BODY: usize = 32 << 20;

/// The most values of a request, such as indices of files. They take a hundred times their text.
pub const MAX_VALUES: usize = 1 << 18;

/// How long a change makes a torrent recently active, and a removed one is listed.
pub const RECENT: Duration = Duration::from_secs(60);

/// The version of the RPC.
pub const RPC_VERSION: &str = "6.0.0";
