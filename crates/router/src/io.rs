//! The system calls std does not offer: batches of datagrams with segmentation offload, socket
//! buffers, poll with short timeouts, signals.
//!
//! They are made through libc: rustix has neither `recvmmsg` nor the options of UDP segmentation
//! offload, and noq-udp sends from one contiguous buffer only, while a router sends packets from
//! where it received them.

mod inbox;
mod process;
mod socket;
mod wait;

pub(crate) use self::inbox::{Inbox, SLOTS};
pub(crate) use self::process::{Signals, release_memory};
pub(crate) use self::socket::{dropped, has_no_route, largest_payload, open, send};
pub(crate) use self::wait::{Waiting, entry};
