//! Filters of this host that may keep captured connections from the shim.

use std::num::NonZeroU16;

use crate::out::errln;

/// Warns of each chain of arriving packets that drops what it does not accept: captured connections
/// arrive at a port of this host, those of other hosts over the network.
pub(super) fn warn_of_dropping(port: Option<NonZeroU16>) {
    let chains = match hawser_capture::dropping_chains() {
        Ok(chains) => chains,
        Err(error) => {
            tracing::debug!(%error, "cannot list the chains of nf_tables");
            return;
        }
    };
    let what = match port {
        Some(port) => format!("tcp dport {port}"),
        None => "ct status dnat".to_owned(),
    };
    for chain in chains {
        errln!(
            "hawser: warning: the chain {chain} drops arriving packets that it does not accept, \
             captured connections perhaps among them: `nft insert rule {chain} {what} accept`"
        );
    }
}
