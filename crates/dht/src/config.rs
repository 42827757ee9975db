//! How a node of the DHT is set up, and what it announces.

use crate::address::Address;
use crate::id::Id;

/// How a node is set up.
#[derive(Debug, Clone, Copy)]
pub struct Config<A> {
    /// The id of the last run. It is used unless `external` is given and another id follows from
    /// that.
    pub id: Option<Id>,
    /// The address under which others reach this node, where it is known. If not, it is concluded
    /// from what others say (BEP 42).
    pub external: Option<A>,
    /// Whether the node only asks and never answers, as behind a NAT or with little traffic to
    /// spend (BEP 43).
    pub read_only: bool,
    /// Most searches at once, at least 1; further ones wait.
    pub max_searches: usize,
    /// Most searches that wait.
    pub max_waiting: usize,
    /// Most torrents whose announced peers are kept, at least 1.
    pub max_torrents: usize,
    /// Most queries answered a second, at least 1; for 2 seconds all at once.
    pub answers_per_second: u32,
}

impl<A: Address> Default for Config<A> {
    fn default() -> Self {
        Self {
            id: None,
            external: None,
            read_only: false,
            max_searches: 8,
            max_waiting: 1000,
            max_torrents: 2000,
            answers_per_second: 200,
        }
    }
}

/// What a search announces once it has found the nodes nearest to the info-hash: a peer at the
/// address of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announce {
    /// With this port; 0 is taken as `SamePort`.
    Port(u16),
    /// With the port that this node sends from, as others see it.
    SamePort,
}
