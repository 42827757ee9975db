//! The table that redirects TCP connections to a listener of ours.

mod contents;
mod error;
#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;

use self::error::LONGEST_NAME;
pub use self::error::RedirectError;
pub(crate) use self::error::refused;
use crate::nftables::{Socket, Table, changes, removal};
use crate::wanted::Wanted;

/// An nf_tables table of the family `inet` that redirects TCP connections to a listener. It exists
/// in the network namespace in which it was created, until this is dropped or the process ends, even
/// by SIGKILL: the kernel removes it with the netlink socket that owns it. No other process can
/// change it.
///
/// For two IPv4 prefixes and one of IPv6, `nft list ruleset` prints:
///
/// ```text
/// table inet hawser-shim { # progname hawser
///     flags owner
///     set captured4 {
///         type ipv4_addr
///         flags interval
///         elements = { 10.1.0.0/16, 10.3.0.0/24 }
///     }
///     set captured6 {
///         type ipv6_addr
///         flags interval
///         elements = { fd01::/16 }
///     }
///     chain listeners {
///         type filter hook input priority 0; policy accept;
///         meta l4proto tcp tcp dport 5555 ct status & dnat == 0 reject with tcp reset
///     }
///     chain output {
///         type nat hook output priority -100; policy accept;
///         meta mark 0x00004857 return
///         fib daddr type local return
///         meta l4proto tcp ip daddr @captured4 redirect to :5555
///         meta l4proto tcp ip6 daddr @captured6 redirect to :5555
///     }
/// }
/// ```
///
/// A connection of this host goes to `127.0.0.1` or `::1`, where the listener must accept it;
/// [`original_destination`](crate::original_destination) says where it was to go. The program that
/// connects needs some route to the destination, or the kernel refuses the connection before any
/// rule applies.
///
/// What connects to the listener itself is refused, before it costs a descriptor.
///
/// With a scope other than [`Scope::Host`](crate::Scope::Host) the chain is called `chosen` and
/// comes before that of a table for all programs.
#[derive(Debug)]
pub struct Redirect {
    socket: Socket,
    name: String,
    contents: Table,
}

impl Redirect {
    /// Creates the table, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`RedirectError`]; nothing is created then.
    pub fn create(name: &str, wanted: &Wanted) -> Result<Self, RedirectError> {
        check_name(name)?;
        let contents = contents::table(wanted)?;
        let mut socket = opened()?;
        let requests = changes(name, None, &contents);
        let committed = socket.commit(&requests);
        committed.map_err(|error| refused(name, &requests, error))?;
        Ok(Self {
            socket,
            name: name.to_owned(),
            contents,
        })
    }

    /// Changes what is redirected, in one transaction: each new connection is handled either as
    /// before or as wanted now. Existing connections are not affected. Returns whether there was a
    /// difference.
    ///
    /// # Errors
    /// [`RedirectError`]; the table is unchanged then.
    pub fn apply(&mut self, wanted: &Wanted) -> Result<bool, RedirectError> {
        let contents = contents::table(wanted)?;
        let requests = changes(&self.name, Some(&self.contents), &contents);
        let committed = self.socket.commit(&requests);
        committed.map_err(|error| refused(&self.name, &requests, error))?;
        self.contents = contents;
        Ok(!requests.is_empty())
    }
}

/// Checks that a table can have this name.
pub(crate) fn check_name(name: &str) -> Result<(), RedirectError> {
    match name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
        true => Err(RedirectError::Name(name.to_owned())),
        false => Ok(()),
    }
}

/// A socket to the calling thread's nf_tables.
pub(crate) fn opened() -> Result<Socket, RedirectError> {
    Socket::open().map_err(|error| match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT) => RedirectError::NoNfTables,
        _ => RedirectError::Netlink(error),
    })
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // Closing the socket is not enough: a child process that another thread is starting keeps it
        // open until exec. If this fails, the table is gone already, or goes at that time.
        let _ = self.socket.commit(&[removal(&self.name)]);
    }
}
