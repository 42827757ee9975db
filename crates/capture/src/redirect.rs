//! The table that redirects TCP connections to a listener of ours.

mod contents;

use std::io;

use rustix::io::Errno;

use crate::nftables::{CommitError, Request, Socket, Statement, Table, Target, changes};
use crate::prefixes::PrefixError;
use crate::wanted::Wanted;

/// Longest name of a table in bytes (`NFT_NAME_MAXLEN`, without the zero that ends it).
const NAME: usize = 255;

/// An nf_tables table of the family `inet` that redirects TCP connections to a listener. It exists
/// in the network namespace in which it was created, until this is dropped or the process ends, even
/// by SIGKILL: the kernel removes it with the netlink socket that owns it. Nobody else can change
/// it.
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
/// connects needs a route to the destination, whichever: without one the kernel refuses the
/// connection before it applies any rules.
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
        if name.is_empty() || name.len() > NAME || name.contains('\0') {
            return Err(RedirectError::Name(name.to_owned()));
        }
        let contents = contents::table(wanted)?;
        let mut socket = Socket::open().map_err(|error| match error.raw_os_error() {
            Some(libc::EPROTONOSUPPORT) => RedirectError::NoNfTables,
            _ => RedirectError::Netlink(error),
        })?;
        let requests = changes(name, None, &contents);
        commit(&mut socket, name, &requests)?;
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
        commit(&mut self.socket, &self.name, &requests)?;
        self.contents = contents;
        Ok(!requests.is_empty())
    }
}

/// An error of creating or changing the table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// A prefix cannot be captured.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The mark cannot tell packets apart.
    #[error(
        "the mark 0 is on every packet, and packets to a transparent listener need another mark \
         than our own: choose another"
    )]
    Mark,
    /// A table cannot have this name.
    #[error("{0:?} cannot be the name of a table: choose 1 to {NAME} bytes without a zero")]
    Name(String),
    /// The process may not change nf_tables.
    #[error("not allowed to capture connections: needs CAP_NET_ADMIN in this network namespace")]
    Denied,
    /// The kernel has no nf_tables.
    #[error("this kernel has no nf_tables, which capturing needs: load the module nf_tables")]
    NoNfTables,
    /// The kernel cannot bind a table to its process.
    #[error("this kernel has no nf_tables tables with an owner: needs Linux 5.12 or later")]
    NoOwner,
    /// Another process owns a table of this name.
    #[error("another process captures connections with the table {0}: another shim runs")]
    Owned(String),
    /// Somebody has made a table of this name.
    #[error("there is a table {0} that hawser did not make: remove it (nft delete table inet {0})")]
    Foreign(String),
    /// The kernel lacks something that the rules need.
    #[error("this kernel has no {what}, which capturing needs: load the module {module}")]
    Unsupported {
        /// What is missing.
        what: &'static str,
        /// The kernel module that provides it.
        module: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot change {what} of the table {table}: {source}")]
    Refused {
        /// What could not be changed.
        what: &'static str,
        /// The table's name.
        table: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The netlink socket failed.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Netlink(#[source] io::Error),
    /// The kernel's answer is not as documented.
    #[error("cannot read the kernel's answer about the table {0}")]
    Answer(String),
}

fn commit(socket: &mut Socket, name: &str, requests: &[Request]) -> Result<(), RedirectError> {
    let table = || name.to_owned();
    socket.commit(requests).map_err(|error| match error {
        CommitError::Socket(error) => RedirectError::Netlink(error),
        CommitError::Invalid => RedirectError::Answer(table()),
        CommitError::All(Errno::PERM) => RedirectError::Denied,
        CommitError::All(Errno::OPNOTSUPP | Errno::INVAL) => RedirectError::NoNfTables,
        CommitError::All(error) => RedirectError::Refused {
            what: "the contents",
            table: table(),
            source: error.into(),
        },
        CommitError::Request(index, error) => refused(name, &requests[index].target, error),
    })
}

/// The error of a refused request.
fn refused(name: &str, target: &Target, error: Errno) -> RedirectError {
    let unsupported = |what, module| RedirectError::Unsupported { what, module };
    let what = match (target, error) {
        (Target::Table, Errno::PERM) => return RedirectError::Owned(name.to_owned()),
        (Target::Table, Errno::EXIST) => return RedirectError::Foreign(name.to_owned()),
        (Target::Table, Errno::INVAL | Errno::OPNOTSUPP) => return RedirectError::NoOwner,
        (Target::Chain("nat"), Errno::NOENT) => {
            return unsupported("address translation in nf_tables", "nft_chain_nat");
        }
        // By the module the kernel finds a kind of expression.
        (Target::Rule(rule), Errno::NOENT | Errno::OPNOTSUPP) => {
            let missing = rule.iter().rev().find_map(|statement| match statement {
                Statement::Redirect { .. } => Some(("redirection", "nft_redir")),
                Statement::Proxy { .. } => Some(("transparent proxying", "nft_tproxy")),
                Statement::Group { .. } => Some(("match for control groups", "nft_socket")),
                Statement::ToThisHost => Some(("match for local addresses", "nft_fib_inet")),
                _ => None,
            });
            match missing {
                Some((what, module)) => return unsupported(what, module),
                None => "a rule",
            }
        }
        (Target::Table, _) => "the flags",
        (Target::Set, _) => "the prefixes",
        (Target::Chain(_), _) => "a chain",
        (Target::Rule(_), _) => "a rule",
    };
    RedirectError::Refused {
        what,
        table: name.to_owned(),
        source: error.into(),
    }
}
