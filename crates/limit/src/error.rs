//! Errors.

use std::io;
use std::time::Duration;

use crate::limit::LinkLimit;

/// A limit cannot be set, removed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no such link in this network namespace.
    #[error("no link {link} in this network namespace")]
    NoLink {
        /// The link's name.
        link: String,
    },
    /// The rate is out of bounds.
    #[error(
        "cannot limit {link} to {rate} bit/s: choose {min} to {max}",
        min = LinkLimit::MIN_RATE,
        max = LinkLimit::MAX_RATE
    )]
    Rate {
        /// The link's name.
        link: String,
        /// The wanted rate in bit/s.
        rate: u64,
    },
    /// The queue would hold more bytes than the kernel can count.
    #[error("cannot queue {queue:?} on {link}: at {rate} bit/s that is 4 GiB or more, shorten it")]
    Queue {
        /// The link's name.
        link: String,
        /// The wanted length.
        queue: Duration,
        /// The rate in bit/s.
        rate: u64,
    },
    /// The link has a queueing discipline that hawser did not set.
    #[error(
        "{link} has a queueing discipline that hawser did not set ({kind} {:x}:): \
         remove it first (tc qdisc del dev {link} root)",
        handle >> 16
    )]
    Foreign {
        /// The link's name.
        link: String,
        /// The discipline's kind, such as `tbf`.
        kind: String,
        /// The discipline's handle.
        handle: u32,
    },
    /// Setting a limit was interrupted, or another program removed a part of it.
    #[error("the limit on {link} is incomplete: set it again, or remove it")]
    Incomplete {
        /// The link's name.
        link: String,
    },
    /// The right to change links is missing.
    #[error("not allowed to limit {link}: needs CAP_NET_ADMIN in this network namespace")]
    Denied {
        /// The link's name.
        link: String,
    },
    /// The kernel lacks HTB or `bfifo`.
    #[error("this kernel has no {kind}, which limits need: load the module {module}")]
    Unsupported {
        /// What is missing.
        kind: &'static str,
        /// The kernel module that has it.
        module: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {action} {link}: {source}")]
    Refused {
        /// The attempted change.
        action: &'static str,
        /// The link's name.
        link: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The netlink socket failed.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Netlink(#[source] io::Error),
    /// The kernel's answer is not as documented.
    #[error("cannot read the kernel's answer about {link}: {what}")]
    Answer {
        /// The link's name.
        link: String,
        /// What is wrong with it.
        what: String,
    },
}
