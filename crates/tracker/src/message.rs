//! The messages between clients and trackers, over HTTP and over UDP.
//!
//! [`AnnounceRequest`] and [`Answer`] are the same over both; [`http`] and [`udp`] write and read them.
//!
//! # SCION
//!
//! A client with a SCION address sends it as `scion=1-ff00:0:110,10.0.0.1:6881` (escaped) in the query of
//! an announce over HTTP, or in the URL data (BEP 41) of one over UDP. The answer over HTTP then has the
//! key `peers_scion` beside `peers` and `peers6`, a string of [entries](entries).
//!
//! A tracker over SCION is asked by the packets of BEP 15 over SCION/UDP; the peers of its answers are
//! such entries, in place of addresses of a fixed length.

mod announce;
pub mod entries;
pub mod http;
mod text;
pub mod udp;

pub use self::announce::{
    AnnounceRequest, Answer, Event, MAX_ANSWER_PEERS, Retry, Scraped, TrackerError,
};
