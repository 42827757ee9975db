//! Limits, their counters and errors.

use std::io;
use std::time::Duration;

/// A limit on the traffic that a link sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkLimit {
    /// Bit/s, from [`MIN_RATE`](Self::MIN_RATE) to [`MAX_RATE`](Self::MAX_RATE), rounded down to
    /// whole bytes per second.
    pub rate: u64,
    /// Longest wait of a packet before it is sent: the queue holds `rate × queue` bits, at least
    /// two frames and two milliseconds of the rate, at most 4 GiB. When it is full, packets are
    /// dropped.
    pub queue: Duration,
}

impl LinkLimit {
    /// Lowest rate that a link can be limited to: 8 kbit/s.
    pub const MIN_RATE: u64 = 8_000;
    /// Highest rate that a link can be limited to: 100 Gbit/s.
    pub const MAX_RATE: u64 = 100_000_000_000;
}

/// Counters of a limited link, since the limit was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes sent, as the limit counts them.
    pub bytes: u64,
    /// Packets sent, each segment of an offloaded packet counted.
    pub packets: u64,
    /// Packets dropped because the queue was full. Wraps at 2³².
    pub drops: u32,
    /// Number of times that the limit delayed a packet. Wraps at 2³².
    pub overlimits: u32,
    /// Bytes waiting in the queue now.
    pub backlog: u32,
}

/// An error of setting, removing or reading a limit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no such link in this network namespace.
    #[error("no link {0} in this network namespace")]
    NoLink(String),
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
    #[error("the limit on {0} is incomplete: set it again, or remove it")]
    Incomplete(String),
    /// The process may not change links.
    #[error("not allowed to limit {0}: needs CAP_NET_ADMIN in this network namespace")]
    Denied(String),
    /// The kernel lacks HTB or `bfifo`.
    #[error("this kernel has no {kind}, which limits need: load the module {module}")]
    Unsupported {
        /// What is missing.
        kind: &'static str,
        /// The kernel module that provides it.
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
        /// The defect of the answer.
        what: String,
    },
}
