//! The system calls that std does not offer: batches of datagrams with segmentation offload, socket
//! buffer sizes, poll with short timeouts, signals.
//!
//! They use libc: rustix has neither `recvmmsg` nor the options of UDP segmentation offload, and
//! noq-udp sends from one contiguous buffer only, while the router sends packets from its receive
//! buffers without a copy.

mod distribute;
mod inbox;
mod process;
mod socket;
mod wait;

pub(crate) use self::inbox::{Inbox, SLOTS};
pub use self::process::Signals;
pub(crate) use self::socket::{
    MAX_MESSAGES, Message, dropped, has_no_route, open, probe, send, send_many, set_merging,
};
pub(crate) use self::wait::{Waiting, entry};
