//! What keeps an entry from being used.

use std::fmt;
use std::net::IpAddr;

use hawser_topology::IsdAsn;
use ipnet::IpNet;
use thiserror::Error;

use super::destination::special;
use super::entry::Entry;
use super::target::Target;

/// This host, and those that SCION itself sends packets to: an entry with one of their addresses is
/// not used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Local {
    isd_as: Option<IsdAsn>,
    hosts: Vec<(IpAddr, Role)>,
}

/// What an address is to this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// One of this host's own.
    Host,
    /// A border router's.
    Router,
    /// The SCION daemon's.
    Daemon,
}

impl Local {
    /// A host in the AS `isd_as`, of which nothing else is known.
    pub fn new(isd_as: IsdAsn) -> Self {
        Self {
            isd_as: Some(isd_as),
            hosts: Vec::new(),
        }
    }

    /// Adds an address.
    #[must_use]
    pub fn with_address(mut self, ip: IpAddr, role: Role) -> Self {
        self.hosts.push((ip.to_canonical(), role));
        self
    }

    fn is_this_host(&self, isd_as: IsdAsn, ip: IpAddr) -> bool {
        self.isd_as == Some(isd_as) && self.hosts.contains(&(ip, Role::Host))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "this host",
            Self::Router => "a border router of this AS",
            Self::Daemon => "the SCION daemon",
        })
    }
}

/// An entry that is not used, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: `{destination}` {fault}")]
#[non_exhaustive]
pub struct Problem {
    /// The line in the map's file, from 1.
    pub line: usize,
    /// The entry's destination.
    pub destination: String,
    /// What is wrong.
    pub fault: Fault,
}

impl Problem {
    pub(crate) fn new(entry: &Entry, fault: Fault) -> Self {
        Self {
            line: entry.line,
            destination: entry.destination.to_string(),
            fault,
        }
    }
}

/// What is wrong with an entry, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name has no address.
    #[error("has no address ({0}): correct the name, or map its IP address")]
    NoAddress(String),
    /// The name has no address now; the former ones are used.
    #[error(
        "has no address now ({0}), and keeps its former ones: map its IP address if that lasts"
    )]
    Former(String),
    /// One of the name's addresses cannot be another host's; it is not used.
    #[error("has the {kind} address {ip}, which is not mapped: correct the name's addresses")]
    Special {
        /// The address.
        ip: IpAddr,
        /// What it is.
        kind: &'static str,
    },
    /// The target is this host.
    #[error("is mapped to {0}, which is this host itself: name another target, or remove it")]
    ThisHost(Target),
    /// The hosts have one that SCION packets are sent to.
    #[error(
        "has {ip}, the address of {role}, which SCION itself needs: map smaller prefixes without it"
    )]
    Loop {
        /// The address.
        ip: IpAddr,
        /// What it is.
        role: Role,
    },
    /// The target is in this AS, and its address one of those that are mapped.
    #[error(
        "has the address of its own target {0}, which is in this AS and reached by it: remove the entry, or map smaller prefixes without that address"
    )]
    OwnTarget(Target),
    /// Two names have one address, with different targets.
    #[error(
        "has the address {ip}, as `{other}` in line {line} has, which is mapped to {target}: that one counts; give both the same target and options, or remove one"
    )]
    Shared {
        /// The address.
        ip: IpAddr,
        /// The destination of the other entry.
        other: String,
        /// The other entry's line.
        line: usize,
        /// The other entry's target.
        target: Target,
    },
}

/// Whether captured connections to the addresses `net` of an entry would come back to this host's
/// shim, or keep SCION from working.
pub(super) fn check(entry: &Entry, net: IpNet, local: &Local) -> Result<(), Fault> {
    if let Some((_, kind)) = special(net) {
        let ip = net.addr();
        return Err(Fault::Special { ip, kind });
    }
    let target = entry.target;
    if let Target::Host { isd_as, ip, .. } = target
        && local.is_this_host(isd_as, ip.to_canonical())
    {
        return Err(Fault::ThisHost(target));
    }
    let mut hosts = local.hosts.iter();
    if let Some(&(ip, role)) = hosts.find(|(ip, _)| net.contains(ip)) {
        return Err(Fault::Loop { ip, role });
    }
    // Inside an AS packets go to the target's address itself.
    let reaches = match target {
        Target::As(_) => true,
        Target::Host { ip, .. } => net.contains(&ip.to_canonical()),
    };
    if reaches && local.isd_as == Some(target.isd_as()) {
        return Err(Fault::OwnTarget(target));
    }
    Ok(())
}
