//! Sets and reads link limits in the kernel over netlink.
//!
//! A limit bounds the send rate of a link, in bit/s of Ethernet frames (with header, without
//! preamble, gap and checksum). It is an HTB queueing discipline with one class for all packets,
//! and below it a byte-counting queue (`bfifo`), whose size is given as a time. To limit both
//! directions of a link between two network namespaces, limit both its ends.
//!
//! HTB counts a packet that is segmented later (GSO, TSO) with the headers of all its segments, but
//! queues and sends it as one packet. So senders over a limited link must bound the size of one
//! send; the queue drops a packet that is larger than the whole queue.
//!
//! All calls block for some tens of microseconds, and act on the network namespace of the calling
//! thread, where each opens a new netlink socket.

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
    /// No change: the kernel already had that limit.
    Unchanged,
    /// A limit was created.
    Created,
    /// The existing limit was changed in place, without loss of queued packets.
    Changed,
    /// The limit was removed. Queued packets are lost.
    Removed,
}

/// Sets the limit on the traffic that `link` sends; `None` removes it.
///
/// Reads the kernel's state and changes only what differs. Two calls for one link must not run at
/// the same time. When the MTU of the link changes, the limit must be applied again, because burst
/// and queue hold whole frames.
///
/// # Errors
/// When there is no such link, the limit is out of bounds, `CAP_NET_ADMIN` or HTB is missing, or
/// the link has a queueing discipline that hawser did not set. A limit that could be set up only in
/// part is removed again.
pub fn apply(link: &str, wanted: Option<&LinkLimit>) -> Result<Change, LimitError> {
    let mut link = Link::open(link)?;
    let root = link.root()?;
    match (wanted, root) {
        (None, Root::Limit) => {
            link.remove_root()?;
            Ok(Change::Removed)
        }
        // Another program's queueing discipline must not be removed.
        (None, Root::Free | Root::Foreign { .. }) => Ok(Change::Unchanged),
        (Some(wanted), Root::Free) => {
            let plan = Plan::new(wanted, &link)?;
            link.add_root()?;
            if let Err(error) = put(&mut link, &plan) {
                // Without its class HTB would silently pass all packets without a limit. If
                // removing fails too, the first error says more about the cause.
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

/// The limit that [`apply`] set on `link`, with its counters; `None` if there is no limit, or the
/// link has a queueing discipline that hawser did not set.
///
/// Returns the values in the kernel: the rate is in whole bytes per second, the queue at least two
/// frames long. Needs no privileges.
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
