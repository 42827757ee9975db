//! Why limits cannot be set or read.

use std::io;
use std::time::Duration;

use hawser_kernel::netlink::NetlinkError;

use crate::limit::{Limit, Owner};
use crate::quote::quoted;

/// An error of setting, removing or reading limits.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no such device in this network namespace.
    #[error("no device {0} in this network namespace")]
    NoDevice(String),
    /// A device was removed while its limits were set.
    #[error("the device {0} was removed while its limits were set")]
    Vanished(String),
    /// A rate is out of bounds.
    #[error(
        "cannot limit {owner} on {device} to {rate} bit/s: choose {min} to {max}, or 0 to let nothing pass",
        min = Limit::MIN_RATE,
        max = Limit::MAX_RATE
    )]
    Rate {
        /// The device's name.
        device: String,
        /// Whose limit it is.
        owner: Owner,
        /// The wanted rate in bit/s.
        rate: u64,
    },
    /// A queue would hold more bytes than the kernel can count.
    #[error(
        "cannot queue {queue:?} for {owner} on {device}: at {rate} bit/s that is 4 GiB or more, \
         shorten it"
    )]
    Queue {
        /// The device's name.
        device: String,
        /// Whose limit it is.
        owner: Owner,
        /// The wanted length.
        queue: Duration,
        /// The rate in bit/s.
        rate: u64,
    },
    /// There are more links than a device can have.
    #[error("{device} cannot have limits of {links} links: at most {max}", max = crate::MAX_LINKS)]
    TooMany {
        /// The device's name.
        device: String,
        /// The wanted number.
        links: usize,
    },
    /// The device has a root queueing discipline that hawser did not set.
    #[error(
        "{device} has a queueing discipline that hawser did not set ({kind} {:x}:): replace it \
         (--replace), or remove it (tc qdisc del dev {} root)",
        handle >> 16, quoted(device)
    )]
    Foreign {
        /// The device's name.
        device: String,
        /// The kind of discipline.
        kind: String,
        /// Its handle.
        handle: u32,
    },
    /// The device has a filter that hawser did not set where those of hawser must be.
    #[error(
        "{device} has a {kind} filter with the preference {preference} that hawser did not set, where \
         hawser's must be: remove it (tc filter del {point} pref {preference})"
    )]
    ForeignFilter {
        /// The device's name.
        device: String,
        /// The kind of filter.
        kind: String,
        /// Its preference.
        preference: u16,
        /// Where it is, as tc(8) takes it.
        point: String,
    },
    /// A device that hawser did not create has the name of an IFB that is needed.
    #[error(
        "the limits of {device} need the name {name}, which a device has that hawser did not create: \
         rename it (ip link set dev {name} name NEW), or remove it"
    )]
    ForeignDevice {
        /// The device that is to be limited.
        device: String,
        /// The name of the other device.
        name: String,
    },
    /// A limit is set up only in part, as after an interruption.
    #[error("the limits of {0} are set up only in part: apply them again")]
    Incomplete(String),
    /// The calling thread may not do that.
    #[error("not allowed to limit {0}: needs CAP_NET_ADMIN in this network namespace")]
    Denied(String),
    /// The kernel lacks something.
    #[error("this kernel has no {what}: load its module ({module})")]
    Unsupported {
        /// What is missing.
        what: &'static str,
        /// The module.
        module: &'static str,
    },
    /// The kernel refused a change.
    #[error("the kernel refused \"{change}\": {source}")]
    Refused {
        /// The change, as a command.
        change: String,
        /// Why.
        source: io::Error,
    },
    /// An IFB of a device that is gone cannot be removed.
    #[error(
        "cannot remove {name}, which is left of the limits of a device that is gone: {source}; \
         remove it (ip link del dev {name})"
    )]
    Orphan {
        /// The IFB's name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel's answer is not as documented.
    #[error("cannot read the kernel's state of {device}: {what}")]
    Answer {
        /// The device's name.
        device: String,
        /// What is wrong.
        what: String,
    },
    /// The kernel cannot be talked to.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Netlink(#[source] io::Error),
}

/// An error of reading the state of `device`.
pub(crate) fn reading(device: &str, error: NetlinkError) -> LimitError {
    match error {
        NetlinkError::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            LimitError::Denied(device.to_owned())
        }
        NetlinkError::Refused(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            LimitError::NoDevice(device.to_owned())
        }
        NetlinkError::Invalid(what) => LimitError::Answer {
            device: device.to_owned(),
            what,
        },
        other => LimitError::Netlink(other.into()),
    }
}
