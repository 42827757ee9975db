//! The table that keeps packets to captured destinations from leaving by ordinary routes.

mod contents;
#[cfg(test)]
mod tests;

use ipnet::IpNet;

use crate::nftables::{Ownership, Socket, Table, base_chains, changes, removal, replacement};
use crate::redirect::{RedirectError, check_name, opened, refused};

/// What must not leave by ordinary routes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarded {
    /// Destinations to which no TCP connection is opened, in any order.
    pub connections: Vec<IpNet>,
    /// Destinations to which nothing else is sent, in any order.
    pub packets: Vec<IpNet>,
    /// Packets of sockets with this mark (`SO_MARK` of socket(7)) may leave.
    pub mark: u32,
    /// The device by which packets may leave, as they are captured there.
    pub device: Option<String>,
    /// Whether other hosts' packets, which this one forwards, must not leave either.
    pub forwarded: bool,
}

impl Guarded {
    /// Nothing yet; sockets with `mark` are exempt.
    pub fn new(mark: u32) -> Self {
        Self {
            connections: Vec::new(),
            packets: Vec::new(),
            mark,
            device: None,
            forwarded: false,
        }
    }
}

/// An nf_tables table of the family `inet` that rejects what would leave for captured destinations by
/// ordinary routes: TCP connections with a reset, other packets as "administratively prohibited".
/// Packets of TCP connections that are open pass.
///
/// It comes after the translation of destinations, so that it has no effect on connections that a
/// [`Redirect`](crate::Redirect) takes. It stays when the process ends, however that ends, until
/// [`remove`](Self::remove): what nobody captures any more is rejected then. While the process runs,
/// no other one can change it, nor flush it, since Linux 6.9.
///
/// For an IPv4 prefix, `nft list ruleset` prints:
///
/// ```text
/// table inet hawser-closed { # progname hawser
///     flags owner,persist
///     set connections4 { ... }
///     set packets4 { ... }
///     chain output {
///         type filter hook output priority 0; policy accept;
///         meta mark 0x00004857 return
///         oifname "hawser0" return
///         fib daddr type local return
///         meta l4proto tcp tcp flags & (fin|syn|rst|ack) == syn ip daddr @connections4
///             reject with tcp reset
///         meta l4proto tcp return
///         ip daddr @packets4 reject with icmpx admin-prohibited
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Guard {
    socket: Socket,
    name: String,
    contents: Table,
}

impl Guard {
    /// Creates the table in the calling thread's network namespace, in place of one of this name that
    /// an ended process left.
    ///
    /// # Errors
    /// [`RedirectError`]; nothing has changed then.
    pub fn create(name: &str, guarded: &Guarded) -> Result<Self, RedirectError> {
        check_name(name)?;
        let contents = contents::table(guarded)?;
        let mut socket = opened()?;
        let requests = replacement(name, Ownership::Persistent, &contents);
        let committed = match socket.commit(&requests) {
            Err(error) if error.is_unsupported() => {
                // Before Linux 6.9.
                socket.commit(&replacement(name, Ownership::Free, &contents))
            }
            committed => committed,
        };
        committed.map_err(|error| refused(name, &requests, error))?;
        Ok(Self {
            socket,
            name: name.to_owned(),
            contents,
        })
    }

    /// Changes what is guarded, in one transaction. Returns whether there was a difference.
    ///
    /// # Errors
    /// [`RedirectError`]; the table is unchanged then.
    pub fn apply(&mut self, guarded: &Guarded) -> Result<bool, RedirectError> {
        let contents = contents::table(guarded)?;
        let requests = changes(&self.name, Some(&self.contents), &contents);
        let committed = self.socket.commit(&requests);
        committed.map_err(|error| refused(&self.name, &requests, error))?;
        self.contents = contents;
        Ok(!requests.is_empty())
    }

    /// Removes the table: packets to what it guarded may leave from now on.
    ///
    /// # Errors
    /// [`RedirectError`].
    pub fn remove(mut self) -> Result<(), RedirectError> {
        let requests = [removal(&self.name)];
        let committed = self.socket.commit(&requests);
        committed.map_err(|error| refused(&self.name, &requests, error))
    }

    /// Removes a table of this name that an ended process left in the calling thread's network
    /// namespace. Returns whether there was one.
    ///
    /// # Errors
    /// [`RedirectError`], also when its process still runs.
    pub fn remove_left(name: &str) -> Result<bool, RedirectError> {
        if !is_there(name)? {
            return Ok(false);
        }
        let requests = [removal(name)];
        let committed = opened()?.commit(&requests);
        committed.map_err(|error| refused(name, &requests, error))?;
        Ok(true)
    }
}

/// Whether there is a table of this name, with chains, in the calling thread's network namespace.
///
/// # Errors
/// [`RedirectError`] when the kernel does not say.
pub fn is_there(name: &str) -> Result<bool, RedirectError> {
    let chains = base_chains().map_err(RedirectError::Netlink)?;
    let inet = libc::NFPROTO_INET as u8;
    Ok(chains
        .iter()
        .any(|chain| chain.family == inet && chain.table == name))
}
