//! Errors of the table, and what the kernel's refusals mean.

use std::io;

use rustix::io::Errno;

use crate::nftables::{CommitError, Request, Statement, Target};
use crate::prefixes::PrefixError;

/// Longest name of a table in bytes (`NFT_NAME_MAXLEN`, without the zero that ends it).
pub(super) const LONGEST_NAME: usize = 255;

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
    /// No listener can be on port 0.
    #[error("cannot redirect connections to port 0: give the port of the listener")]
    Port,
    /// A table cannot have this name.
    #[error("{0:?} cannot be the name of a table: choose 1 to {LONGEST_NAME} bytes without a zero")]
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
    #[error(
        "another process captures connections with the table {0}: another shim runs here, take it \
         down first"
    )]
    Owned(String),
    /// There is a table of this name without an owner.
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

/// The error of a transaction for the table `name`.
pub(crate) fn refused(name: &str, requests: &[Request], error: CommitError) -> RedirectError {
    let table = || name.to_owned();
    match error {
        CommitError::Socket(error) => RedirectError::Netlink(error),
        CommitError::Invalid => RedirectError::Answer(table()),
        CommitError::All(Errno::PERM) => RedirectError::Denied,
        CommitError::All(Errno::OPNOTSUPP | Errno::INVAL) => RedirectError::NoNfTables,
        CommitError::All(error) => RedirectError::Refused {
            what: "the contents",
            table: table(),
            source: error.into(),
        },
        CommitError::Request(index, error) => refused_request(name, &requests[index].target, error),
    }
}

/// The error of a refused request.
fn refused_request(name: &str, target: &Target, error: Errno) -> RedirectError {
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
                Statement::Reject(_) => Some(("rejection", "nft_reject_inet")),
                Statement::NotRedirected => Some(("match for tracked connections", "nft_ct")),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nftables::{Family, Field};

    #[test]
    fn refusals_name_what_is_missing() {
        let message = |target, error| refused_request("hawser-shim", &target, error).to_string();
        let redirect = vec![
            Statement::Tcp,
            Statement::In {
                field: Field::Destination,
                family: Family::V4,
                set: "captured4",
            },
            Statement::Redirect { port: 1 },
        ];
        let local = vec![Statement::ToThisHost, Statement::Return];
        for (target, error, expected) in [
            (
                Target::Table,
                Errno::PERM,
                "another process captures connections with the table hawser-shim: another shim runs \
                 here, take it down first",
            ),
            (
                Target::Table,
                Errno::EXIST,
                "there is a table hawser-shim that hawser did not make: remove it (nft delete \
                 table inet hawser-shim)",
            ),
            (
                Target::Table,
                Errno::OPNOTSUPP,
                "this kernel has no nf_tables tables with an owner: needs Linux 5.12 or later",
            ),
            (
                Target::Chain("nat"),
                Errno::NOENT,
                "this kernel has no address translation in nf_tables, which capturing needs: load \
                 the module nft_chain_nat",
            ),
            (
                Target::Rule(redirect),
                Errno::NOENT,
                "this kernel has no redirection, which capturing needs: load the module nft_redir",
            ),
            (
                Target::Rule(local),
                Errno::NOENT,
                "this kernel has no match for local addresses, which capturing needs: load the \
                 module nft_fib_inet",
            ),
            (
                Target::Set,
                Errno::NOMEM,
                "cannot change the prefixes of the table hawser-shim: Cannot allocate memory (os \
                 error 12)",
            ),
        ] {
            assert_eq!(message(target, error), expected);
        }
        for (error, expected) in [
            (
                Errno::PERM,
                "not allowed to capture connections: needs CAP_NET_ADMIN in this network namespace",
            ),
            (
                Errno::OPNOTSUPP,
                "this kernel has no nf_tables, which capturing needs: load the module nf_tables",
            ),
        ] {
            let all = refused("hawser-shim", &[], CommitError::All(error));
            assert_eq!(all.to_string(), expected);
        }
    }
}
