//! The system calls std does not offer: batches of datagrams with segmentation offload, socket
//! buffers, poll with short timeouts, signals.
//!
//! They are made through libc: rustix has neither `recvmmsg` nor the options of UDP segmentation
//! offload, and noq-udp sends from one contiguous buffer only, while a router sends packets from
//! where it received them.

mod inbox;
mod memory;
mod poll;
mod send;
mod signals;
mod socket;

use std::io;

pub(crate) use self::inbox::{Inbox, ReceiveSlots};
pub(crate) use self::memory::release_memory;
pub(crate) use self::poll::{Interest, Poller, set_timer_slack};
pub(crate) use self::send::send;
pub(crate) use self::signals::Signals;
pub(crate) use self::socket::{dropped, has_no_route, largest_payload, open};

/// The result of a call that returns -1 on failure.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
