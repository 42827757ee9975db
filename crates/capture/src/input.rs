//! Rules of others that may keep redirected connections from a listener.

use std::{fmt, io};

use crate::nftables::base_chains;

/// A chain of arriving packets that drops what none of its rules accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppingChain {
    /// The family of its table, as nft(8) calls it.
    pub family: &'static str,
    /// Its table.
    pub table: String,
    /// Its name.
    pub chain: String,
}

impl fmt::Display for DroppingChain {
    /// As nft(8) names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family, self.table, self.chain)
    }
}

/// The chains at the input hook whose policy is to drop, those of iptables-nft(8) among them, in the
/// calling thread's network namespace. Which rules they have is not looked at.
///
/// # Errors
/// As the system says.
pub fn dropping_chains() -> io::Result<Vec<DroppingChain>> {
    /// `NF_INET_LOCAL_IN`.
    const INPUT: u32 = 1;
    let chains = base_chains()?.into_iter();
    let dropping = chains.filter(|chain| chain.drops && chain.hook == INPUT);
    let named = dropping.filter_map(|chain| {
        let family = match i32::from(chain.family) {
            libc::NFPROTO_INET => "inet",
            libc::NFPROTO_IPV4 => "ip",
            libc::NFPROTO_IPV6 => "ip6",
            // They have other hooks, with the same numbers.
            _ => return None,
        };
        Some(DroppingChain {
            family,
            table: chain.table,
            chain: chain.name,
        })
    });
    Ok(named.collect())
}
