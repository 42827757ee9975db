//! Link limits as kernel state, by netlink.
//!
//! A limit is what a link sends at most, in bit/s of Ethernet frames (header included, preamble,
//! gap and checksum not). It is an HTB queueing discipline with one class that every packet falls
//! into, and below it a byte-counting queue (`bfifo`) that is sized in time. Both directions of a
//! link between two network namespaces are limited by limiting either end.
//!
//! HTB counts a packet that the network card is to cut into segments (GSO, TSO) with the headers of
//! all its segments, but queues and sends it as one. So whoever sends over a limited link caps what
//! it hands over at once; the queue drops a packet that is larger than all of it.
//!
//! All calls block for some tens of microseconds, and act on the network namespace of the calling
//! thread: each opens its own netlink socket there.

mod error;
mod htb;
mod link;
mod netlink;
mod plan;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::error::LimitError;
use self::link::{Link, Root};
use self::plan::Plan;

/// What a link sends at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLimit {
    /// Bit/s, from [`MIN_RATE`](Self::MIN_RATE) to [`MAX_RATE`](Self::MAX_RATE). The kernel counts
    /// bytes, so the last up to 7 bit/s are cut off.
    pub rate: u64,
    /// How long a packet waits at most before it is sent: the queue holds `rate × queue` bits, at
    /// least two frames and two milliseconds of the rate, at most 4 GiB. Packets that find it full
    /// are dropped.
    pub queue: Duration,
}

impl LinkLimit {
    /// The least rate a link can be limited to: 8 kbit/s.
    pub const MIN_RATE: u64 = 8_000;
    /// The greatest rate a link can be limited to: 100 Gbit/s.
    pub const MAX_RATE: u64 = 100_000_000_000;
}

/// What passed a limited link, since the limit was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes sent, as the limit counts them.
    pub bytes: u64,
    /// Packets sent, segments counted each.
    pub packets: u64,
    /// Packets dropped because the queue was full. Wraps at 2³².
    pub drops: u32,
    /// How often the link had to wait for the limit. Wraps at 2³².
    pub overlimits: u32,
    /// Bytes waiting in the queue now.
    pub backlog: u32,
}

/// What [`apply`] had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the kernel has it so already.
    Unchanged,
    /// There was no limit; now there is.
    Created,
    /// There was another limit; it was changed in place, and the packets that waited still wait.
    Changed,
    /// There was a limit; now there is none. The packets that waited are lost.
    Removed,
}

/// Makes the kernel limit what `link` sends to `wanted`, or not at all.
///
/// Reads what the kernel has and changes what differs. Two calls for one link must not run at the
/// same time. When the MTU of the link changes, the limit is to be applied again, because burst and
/// queue hold whole frames.
///
/// # Errors
/// The link is not there, the limit is out of bounds, the right (`CAP_NET_ADMIN`) or HTB is
/// missing, or somebody else has set a queueing discipline on the link. A limit that could be set
/// up only in part is taken away again.
pub fn apply(link: &str, wanted: Option<&LinkLimit>) -> Result<Change, LimitError> {
    let mut link = Link::open(link)?;
    let root = link.root()?;
    match (wanted, root) {
        (None, Root::Limit) => {
            link.remove_root()?;
            Ok(Change::Removed)
        }
        // What others have set on the link is no limit of ours to remove.
        (None, Root::Free | Root::Foreign { .. }) => Ok(Change::Unchanged),
        (Some(wanted), Root::Free) => {
            let plan = Plan::new(wanted, &link)?;
            link.add_root()?;
            if let Err(error) = put(&mut link, &plan) {
                // Without its class HTB would let everything through, and nobody would know. If
                // this fails too, the first error still says more about why.
                let _ = link.remove_root();
                return Err(error);
            }
            Ok(Change::Created)
        }
        (Some(wanted), Root::Limit) => {
            let plan = Plan::new(wanted, &link)?;
            match put(&mut link, &plan)? {
                true => Ok(Change::Changed),
                false => Ok(Change::Unchanged),
            }
        }
        (Some(_), Root::Foreign { kind, handle }) => Err(link.foreign(kind, handle)),
    }
}

/// Puts class and queue under our HTB; whether they were not so already.
fn put(link: &mut Link, plan: &Plan) -> Result<bool, LimitError> {
    let class = link.class()?.map(|(class, _)| class);
    let new_class = class != Some(plan.class);
    if new_class {
        link.put_class(&plan.class)?;
    }
    let new_queue = link.queue()? != Some(plan.queue);
    if new_queue {
        link.put_queue(plan.queue)?;
    }
    Ok(new_class || new_queue)
}

/// The limit that [`apply`] set on `link`, with its counters; `None` if there is none, also when
/// somebody else has set a queueing discipline.
///
/// The limit is as the kernel has it: the rate in whole bytes, the queue not shorter than two
/// frames. Needs no rights.
///
/// # Errors
/// The link is not there, or a limit was set up only in part.
pub fn read(link: &str) -> Result<Option<(LinkLimit, Counters)>, LimitError> {
    let mut link = Link::open(link)?;
    if link.root()? != Root::Limit {
        return Ok(None);
    }
    match (link.class()?, link.queue()?) {
        (Some((class, counters)), Some(queue)) => {
            Ok(Some((Plan { class, queue }.limit(), counters)))
        }
        _ => Err(link.incomplete()),
    }
}
