//! Link limits as kernel state, by netlink.
//!
//! A limit bounds what a link sends, in bit/s of Ethernet frames (header included, preamble, gap
//! and checksum not). It is an HTB queueing discipline with one class for all packets, and below it
//! a byte-counting queue (`bfifo`) that is sized in time. To limit both directions of a link
//! between two network namespaces, limit both its ends.
//!
//! HTB counts a packet that the network card is to cut into segments (GSO, TSO) with the headers of
//! all its segments, but queues and sends it as one. So senders over a limited link must bound what
//! they send at once; the queue drops a packet that is larger than the whole queue.
//!
//! All calls block for some tens of microseconds, and act on the network namespace of the calling
//! thread: each opens its own netlink socket there.

mod htb;
mod limit;
mod link;
mod plan;
#[cfg(test)]
mod tests;

pub use self::limit::{Counters, LimitError, LinkLimit};
use self::link::{Link, Root};
use self::plan::Plan;

/// The change that [`apply`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// None: the kernel had that limit.
    Unchanged,
    /// There was no limit; now there is one.
    Created,
    /// There was another limit; it was changed in place, and no waiting packet is lost.
    Changed,
    /// There was a limit; now there is none. Packets that waited are lost.
    Removed,
}

/// Has the kernel limit what `link` sends to `wanted`; `None` removes the limit.
///
/// Reads the kernel's state and changes only what differs. Two calls for one link must not run at
/// the same time. When the MTU of the link changes, the limit must be applied again, because burst
/// and queue hold whole frames.
///
/// # Errors
/// When there is no such link, the limit is out of bounds, the right (`CAP_NET_ADMIN`) or HTB is
/// missing, or the link has a queueing discipline that hawser did not set. A limit that could be
/// set up only in part is removed again.
pub fn apply(link: &str, wanted: Option<&LinkLimit>) -> Result<Change, LimitError> {
    let mut link = Link::open(link)?;
    let root = link.root()?;
    match (wanted, root) {
        (None, Root::Limit) => {
            link.remove_root()?;
            Ok(Change::Removed)
        }
        // A queueing discipline that others have set is not ours to remove.
        (None, Root::Free | Root::Foreign { .. }) => Ok(Change::Unchanged),
        (Some(wanted), Root::Free) => {
            let plan = Plan::new(wanted, &link)?;
            link.add_root()?;
            if let Err(error) = put(&mut link, &plan) {
                // Without its class HTB would let everything through, unnoticed. If this fails too,
                // the first error says more about the cause.
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
        (Some(_), Root::Foreign { kind, handle }) => Err(LimitError::Foreign {
            link: link.name,
            kind,
            handle,
        }),
    }
}

/// Sets class and queue under our HTB. Returns whether anything changed.
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

/// The limit that [`apply`] set on `link`, with its counters; `None` if there is none, also when the
/// link has a queueing discipline that hawser did not set.
///
/// The limit is as the kernel has it: the rate in whole bytes, the queue not shorter than two
/// frames. Needs no rights.
///
/// # Errors
/// When there is no such link, or its limit was set up only in part.
pub fn read(link: &str) -> Result<Option<(LinkLimit, Counters)>, LimitError> {
    let mut link = Link::open(link)?;
    if link.root()? != Root::Limit {
        return Ok(None);
    }
    match (link.class()?, link.queue()?) {
        (Some((class, counters)), Some(queue)) => {
            Ok(Some((Plan { class, queue }.limit(), counters)))
        }
        _ => Err(LimitError::Incomplete(link.name)),
    }
}
