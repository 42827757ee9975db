//! Routes of captured packets that are not redirected: UDP, ICMP, and TCP that needs any route.

mod error;
mod plan;
mod wanted;

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::netlink::{Netlink, NetlinkError};
use rustix::io::Errno;

pub use self::error::RoutesError;
use self::plan::{Change, TableState, plan};
pub use self::wanted::{Device, Routes, Target};

impl Routes {
    /// Sets routes and rules in the calling thread's network namespace. Reads those of the kernel,
    /// and changes only what differs. Returns whether anything did.
    ///
    /// Two calls for one table must not run at the same time.
    ///
    /// # Errors
    /// [`RoutesError`]. What had been changed before the error stays until the next call, or
    /// [`Routes::reset`].
    pub fn apply(&self) -> Result<bool, RoutesError> {
        let wanted = TableState::wanted(self)?;
        put(self.table, &wanted)
    }

    /// Removes all routes and rules of ours for a table, also those of a killed process. Returns
    /// whether there were any.
    ///
    /// # Errors
    /// [`RoutesError`].
    pub fn reset(table: u32) -> Result<bool, RoutesError> {
        put(table, &TableState::default())
    }
}

/// Makes the kernel's state for a table the wanted one.
fn put(table: u32, wanted: &TableState) -> Result<bool, RoutesError> {
    let mut netlink = Netlink::open().map_err(|error| RoutesError::Netlink(error.into()))?;
    let read = |error: NetlinkError| RoutesError::Netlink(error.into());
    let found = TableState {
        routes: netlink.routes(table).map_err(read)?.into_iter().collect(),
        rules: netlink.rules().map_err(read)?.into_iter().collect(),
    };
    let changes = plan(table, wanted, &found)?;
    for change in &changes {
        let done = match change {
            Change::AddRoute(route) => netlink.add_route(route),
            Change::ReplaceRoute(route) => netlink.replace_route(route),
            Change::RemoveRoute(route) => netlink.remove_route(route),
            Change::AddRule(rule) => netlink.add_rule(rule),
            Change::RemoveRule(rule) => netlink.remove_rule(rule),
        };
        done.map_err(|error| failed(change, error))?;
    }
    Ok(!changes.is_empty())
}

fn failed(change: &Change, error: NetlinkError) -> RoutesError {
    let (action, destination, device) = match change {
        Change::AddRoute(route) | Change::ReplaceRoute(route) => {
            ("set the route to", route.destination, route.device)
        }
        Change::RemoveRoute(route) => ("remove the route to", route.destination, route.device),
        Change::AddRule(rule) => ("add the rule for", rule.destination, LOOPBACK),
        Change::RemoveRule(rule) => ("remove the rule for", rule.destination, LOOPBACK),
    };
    match error {
        NetlinkError::Refused(source) => match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) => RoutesError::Denied,
            Some(Errno::NODEV) => RoutesError::NoDevice(device),
            Some(Errno::NETDOWN) => RoutesError::Down(device),
            _ => RoutesError::Refused {
                action,
                destination,
                source,
            },
        },
        other => RoutesError::Netlink(other.into()),
    }
}
