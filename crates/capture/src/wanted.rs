//! What is to be captured.

use ipnet::IpNet;

/// The TCP connections that are to be redirected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Destinations, in any order; they may overlap. None of them may cover loopback or multicast
    /// addresses.
    pub prefixes: Vec<IpNet>,
    /// Port of the listener.
    pub port: u16,
    /// Connections of sockets with this mark (`SO_MARK` of socket(7)) are never redirected: those
    /// of the program that captures.
    pub mark: u32,
    /// The programs of this host whose connections are redirected.
    pub scope: Scope,
    /// Users of this host whose connections are not redirected.
    pub exempt_users: Vec<u32>,
    /// Other hosts' connections through this one.
    pub gateway: Option<Gateway>,
}

impl Wanted {
    /// Nothing but where to: connections of all programs, except those with `mark`, to the listener
    /// on `port`.
    pub fn new(port: u16, mark: u32) -> Self {
        Self {
            prefixes: Vec::new(),
            port,
            mark,
            scope: Scope::Host,
            exempt_users: Vec::new(),
            gateway: None,
        }
    }

    /// Sets the destinations.
    pub fn with_prefixes(mut self, prefixes: impl IntoIterator<Item = IpNet>) -> Self {
        self.prefixes = prefixes.into_iter().collect();
        self
    }

    /// Sets the programs of this host whose connections are redirected.
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the users whose connections are not redirected.
    pub fn with_exempt_users(mut self, users: impl IntoIterator<Item = u32>) -> Self {
        self.exempt_users = users.into_iter().collect();
        self
    }

    /// Sets the other hosts whose connections are redirected.
    pub fn with_gateway(mut self, gateway: Gateway) -> Self {
        self.gateway = Some(gateway);
        self
    }
}

/// The programs whose connections are redirected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All programs in the network namespace.
    Host,
    /// The processes in a control group of version 2, or in one below it (cgroups(7)).
    Group {
        /// Depth below the root of this process's cgroup namespace, which has level 0.
        level: u32,
        /// The inode number of its directory.
        id: u64,
    },
    /// The processes in control groups of the net_cls hierarchy of version 1 with this class.
    Class(u32),
}

/// Connections that other hosts make through this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// The hosts' addresses.
    pub sources: Vec<IpNet>,
    /// Port of the listener for them, which may be the one of [`Wanted::port`].
    pub port: u16,
    /// How their packets get to the listener.
    pub manner: Manner,
}

/// How a forwarded connection gets to the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// With its destination replaced by this host's address on the interface where it arrives. The
    /// listener must accept connections to that address.
    Redirect,
    /// With its destination unchanged, to a listener with `IP_TRANSPARENT` (ip(7)): for interfaces
    /// on which this host has no address of the family, and without an entry in the table of
    /// translated connections.
    ///
    /// The packets get this mark. A policy rule must lead packets with the mark to a table in which
    /// all addresses are local.
    Transparent {
        /// The mark of packets to the listener, other than [`Wanted::mark`].
        mark: u32,
    },
}
