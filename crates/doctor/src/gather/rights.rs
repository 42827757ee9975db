//! What this user may do.

use std::fs::OpenOptions;
use std::io::ErrorKind;

use hawser_kernel::namespace;

use crate::facts::{Rights, Tun};

/// The rights, and the chains of packet filters that drop what no rule accepts.
pub(super) fn gather() -> (Rights, Vec<String>) {
    let net_admin = namespace::may_change_network();
    let tun = match OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        Ok(_) => Tun::Usable,
        Err(error) if error.kind() == ErrorKind::NotFound => Tun::Missing,
        Err(error) => Tun::Refused(error.to_string()),
    };
    // The kernel lists them only for users that may change them.
    let chains = net_admin.then(hawser_capture::dropping_chains);
    let (chains, no_nf_tables) = match chains {
        None => (Vec::new(), None),
        Some(Ok(chains)) => (chains, None),
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
    };
    let user_namespaces = namespace::try_own_user();
    let rights = Rights {
        net_admin,
        namespaces: namespace::is_privileged(),
        no_user_namespaces: user_namespaces.err().map(|error| error.to_string()),
        tun,
        no_nf_tables,
        no_mptcp: hawser_mptcp::check().err().map(|error| error.to_string()),
    };
    (rights, chains.iter().map(ToString::to_string).collect())
}
