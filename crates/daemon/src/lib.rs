//! The service of a host: torrents and transfers, on one server, with one state.
//!
//! [`Prepared`] is the daemon with its torrents read and its API bound, [`Joined`] has the transfers as well;
//! [`Joined::run`] runs it. The torrents are those of `hawser-client`, the transfers, the configuration and the users those of `hawser-service`. This
//! crate adds what they have in common: the folder of the state, the sockets of the API, its description and
//! metrics, the rights of users, readiness, and the end.
//!
//! Users come from the configuration's file, which is followed. The token in the folder of the state stands for
//! the user [`OWNER`](hawser_service::OWNER), with all rights of the daemon. A user sends files from the
//! folders that the file names, and commands the torrents if it says so.
//!
//! The life of a daemon. The torrents, the transfers and the server of each socket run beside each other. When one
//! ends by itself, or the daemon is asked to end, the torrents and transfers are stopped and saved; requests are
//! answered meanwhile.

mod access;
mod error;
mod run;
mod server;

pub use self::error::DaemonError;
pub use self::run::{Joined, Options, Prepared};
pub use self::server::Addresses;
