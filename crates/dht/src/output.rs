//! What a node orders and reports.

use thiserror::Error;

/// A search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchId(pub(crate) u64);

/// Why a search is not begun.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// So many searches wait already.
    #[error("{0} searches of the DHT wait already")]
    TooMany(usize),
}

/// An order to the caller, or a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<A> {
    /// Send a datagram.
    Send {
        /// To this node.
        to: A,
        /// At most about 1,200 bytes.
        bytes: Vec<u8>,
    },
    /// A search found peers, none of which it has reported before.
    Peers {
        /// The search.
        search: SearchId,
        /// The peers. Whether they can be reached, and have the torrent, only a connection shows.
        peers: Vec<A>,
    },
    /// A search has ended.
    Finished {
        /// The search.
        search: SearchId,
        /// What came of it.
        summary: Summary,
    },
}

/// What came of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Nodes asked for peers.
    pub asked: usize,
    /// Nodes that answered.
    pub answered: usize,
    /// Peers found.
    pub peers: usize,
    /// Nodes that confirmed the announcement.
    pub announced: usize,
    /// Steps from the own routing table to the farthest of the final nodes: 1, if they were in it.
    pub hops: u32,
}

/// The state of a node, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Nodes of the routing table that answered, or asked, in the last 15 minutes.
    pub good: usize,
    /// Nodes of the routing table that did not, and do not fail.
    pub questionable: usize,
    /// Torrents with peers announced here.
    pub torrents: usize,
    /// Peers announced here.
    pub peers: usize,
    /// Queries that wait for an answer.
    pub in_flight: usize,
    /// Searches under way.
    pub searches: usize,
    /// Searches that wait.
    pub waiting: usize,
    /// What has happened so far.
    pub counters: Counters,
}

/// What has happened since a node began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Queries sent.
    pub queries_sent: u64,
    /// Queries answered, also those with an error.
    pub queries_answered: u64,
    /// Queries not answered, since their network or all together exceeded a limit.
    pub queries_limited: u64,
    /// Answers to queries of this node.
    pub answers: u64,
    /// Answers that nothing waits for: too late, repeated, or forged.
    pub answers_unexpected: u64,
    /// Queries that were not answered in time.
    pub timeouts: u64,
    /// Datagrams that are not messages of the DHT.
    pub malformed: u64,
}
