//! Transmission's RPC without I/O: the body of a request becomes the body of its answer, over a
//! [`Client`] that the daemon implements. With it, programs that control Transmission control
//! hawser: transmission-remote, Flood, TrguiNG, Sonarr and others.
//!
//! To serve it at `/transmission/rpc`: check the `Host` header, against rebinding of names, and the
//! password, if there is one; have [`Session::check`] check its header, for GET as for POST, and
//! answer with the [`Challenge`] if it refuses; give the body of a POST to [`answer`]. Refuse a
//! body longer than [`MAX_BODY`] before it is read.
//!
//! Both forms of requests are answered, each in its own: the one of Transmission up to 4.0
//! (`method`, `arguments`, `tag`) and JSON-RPC 2.0 as of Transmission 4.1 (rpc-version-semver
//! 6.0.0). A name may be spelled in camelCase, kebab-case or snake_case in either. Batches are
//! refused.
//!
//! Where this differs from Transmission 4.1: an argument of a wrong type is an error that names the
//! argument; a field or an id that is repeated counts once; the old form's answer to a method that
//! does not exist is `method name not recognized`, as before 4.1.
//!
//! hawser has no block lists, no scripts but the one for completed torrents, and no cache of its own. Fields about these, and the
//! others that it has no fact for, have neutral values: `anti_brute_force_enabled` and
//! `_threshold`, `blocklist_enabled`, `_size` and `_url`, `cache_size_mib`, the four
//! `script_torrent_added_*` and `script_torrent_done_seeding_*` of `session-get`; `manual_announce_time` (-1) and, within `webseeds_ex`,
//! `is_downloading` and `download_bytes_per_second` of `torrent-get`. Setting them has no effect,
//! `blocklist-update` is refused. `location` of `torrent-set` has no effect, as with Transmission.
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
mod limits;
mod lists;
mod methods;
mod names;
mod parts;
mod request;
mod session_view;
mod settings;
mod torrent;
mod tracker_url;

pub use self::answer::answer;
pub use self::change::{Add, Added, Change, Files, GroupChange, Setting, Source, Transport};
pub use self::client::{Action, Client, IpProtocol};
pub use self::csrf::{Challenge, RPC_VERSION_HEADER, SESSION_ID_HEADER, Session};
pub use self::error::CallError;
pub use self::ids::{Ids, TorrentId, TorrentRef};
pub use self::limits::{MAX_BODY, MAX_VALUES, RECENT, RPC_VERSION};
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
