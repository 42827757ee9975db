//! Trackers, without I/O: the [messages](message), the [`Announcer`] of a torrent, which says when which
//! tracker is asked, and the [`Swarms`] of a tracker with what they answer.
//!
//! Pure: no clock and no chance; time is an argument, randomness a generator that is passed in.
//!
//! Sources: BEP 3 (announces over HTTP), 7 (IPv6), 12 (several trackers), 15 (UDP), 23 (compact peers),
//! 24 (external IP), 31 (retry in), 41 (options over UDP), 48 (scrape). What is added for SCION is
//! described in [`message`].

mod announcer;
#[cfg(test)]
mod fuzz;
pub mod message;
mod respond;
mod swarms;
#[cfg(test)]
mod testing;
mod url;

pub use self::announcer::{
    AnnounceId, AnnounceOptions, Announcer, Identity, MAX_TRACKERS, Order, Stats, TrackerState,
    TrackerStatus,
};
pub use self::respond::{HttpReply, MAX_REQUEST_PATH, http_reply, udp_reply};
pub use self::swarms::{
    Client, Counters, Rank, Reach, Refusal, SnapshotError, SwarmOptions, Swarms,
};
pub use self::url::{Host, Scheme, TrackerUrl, UrlError};
