//! Errors of routes.

use std::io;

use ipnet::IpNet;

use crate::prefixes::PrefixError;

/// An error of setting or removing routes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutesError {
    /// A prefix cannot be captured.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The table or the rule would be one of the system's.
    #[error(
        "cannot use the routing table {table} with a rule of priority {priority}: choose a table \
         other than 0 and 253 to 255, and a priority from 1"
    )]
    Number {
        /// Number of the table.
        table: u32,
        /// Priority of the rule.
        priority: u32,
    },
    /// The mark 0 is that of all packets without one.
    #[error("the mark 0 cannot distinguish packets: choose another")]
    Mark,
    /// Another program has a route in our table.
    #[error(
        "the routing table {table} has a route to {destination} of another program: use another"
    )]
    Foreign {
        /// Where that route leads.
        destination: IpNet,
        /// Number of the table.
        table: u32,
    },
    /// The process may not change routes.
    #[error("not allowed to change routes: needs CAP_NET_ADMIN in this network namespace")]
    Denied,
    /// The device does not exist.
    #[error("no device with the index {0} in this network namespace")]
    NoDevice(u32),
    /// The device is down.
    #[error("the device with the index {0} is down: set it up before routing to it")]
    Down(u32),
    /// The kernel refused for another reason.
    #[error("cannot {action} {destination}: {source}")]
    Refused {
        /// The attempted change.
        action: &'static str,
        /// The destinations.
        destination: IpNet,
        /// The kernel's error.
        source: io::Error,
    },
    /// The netlink socket failed.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Netlink(#[source] io::Error),
}
