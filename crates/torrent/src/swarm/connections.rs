//! The open connections, and the peers they belong to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hawser_address::PeerAddr;
use hawser_magnet::Serve;

use super::conn::Conn;
use super::exchange::Exchanges;
use super::groups::Groups;
use super::hash_answers::HashAnswers;
use crate::crowd::{Crowd, network, victim};
use crate::picker::{ConnId, GroupId};
use crate::transport::Connection;
use crate::wire::PeerId;

/// Most connections opened by peers whose handshake is not over.
const MAX_HANDSHAKING: usize = 200;

/// The open connections, and the peers they belong to.
pub(super) struct Connections {
    pub open: BTreeMap<ConnId, Conn>,
    /// Connections that may have room for requests.
    touched: HashSet<ConnId>,
    /// The numbers of their peers, and of those that were connected last.
    pub groups: Groups,
    last_id: ConnId,
    /// How many peers may be connected.
    pub max_peers: usize,
    /// Connections opened by peers whose handshake is not over.
    pub handshaking: Crowd<Arc<dyn Connection>>,
    /// What peers are told of each other.
    pub exchanges: Exchanges,
    /// What peers may still ask of the info dictionary, for those that asked.
    pub metadata: HashMap<ConnId, Serve>,
    /// How many answers with hashes peers may still have, for those that asked.
    pub hashes: HashMap<ConnId, HashAnswers>,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            touched: HashSet::new(),
            groups: Groups::default(),
            last_id: 0,
            max_peers: usize::MAX,
            handshaking: Crowd::new(MAX_HANDSHAKING),
            exchanges: Exchanges::default(),
            metadata: HashMap::new(),
            hashes: HashMap::new(),
        }
    }
}

impl Connections {
    /// Adds a new connection, which may have room for requests.
    pub fn add(&mut self, conn: Conn) -> ConnId {
        let id = self.new_id();
        self.groups
            .joined(&conn.connection.key(), conn.connection.peer());
        self.open.insert(id, conn);
        id
    }

    /// An id that no connection has, also none later.
    pub fn new_id(&mut self) -> ConnId {
        self.last_id += 1;
        self.last_id
    }

    pub fn remove(&mut self, id: &ConnId) -> Option<Conn> {
        self.touched.remove(id);
        self.exchanges.leave(*id);
        self.metadata.remove(id);
        self.hashes.remove(id);
        let removed = self.open.remove(id)?;
        if self.open.values().all(|conn| conn.group != removed.group) {
            self.groups.left(removed.connection.key());
        }
        Some(removed)
    }

    /// The connection that makes room for one that a peer opens: the oldest one of the host that has most
    /// connections opened by peers over which no block was transferred. Peers that wait for their turn with one
    /// connection each keep it: there is none then.
    pub fn spare(&self) -> Option<ConnId> {
        let open = self.open.iter();
        let unused = open
            .filter(|(_, conn)| conn.dialed.is_none() && conn.bytes == 0 && conn.uploaded() == 0);
        victim(
            unused.map(|(id, conn)| (*id, network(conn.connection.peer()))),
            2,
        )
    }

    pub fn ids(&self) -> Vec<ConnId> {
        self.open.keys().copied().collect()
    }

    /// Notes that a connection may have room for requests.
    pub fn touch(&mut self, id: ConnId) {
        self.touched.insert(id);
    }

    /// Notes that every connection may have room for requests.
    pub fn touch_all(&mut self) {
        self.touched.extend(self.open.keys());
    }

    /// Removes and returns the marks of connections that may have room for requests.
    pub fn take_touched(&mut self) -> Vec<ConnId> {
        self.touched.drain().collect()
    }

    /// The number of the peer of a connection in this group, from this address and with this peer id. A peer on
    /// both networks is one peer: its connections over SCION and over plain IP come from one host, with one peer
    /// id. Either alone does not tell, as others can send the same id, and several peers may be at one host.
    ///
    /// Both together are no proof, as a host of another AS may have any IP address. So a peer counts once by this
    /// number, but what it sends is held against its group alone: a peer cannot have another one banned.
    pub fn peer_of(&self, group: GroupId, from: PeerAddr, id: PeerId) -> GroupId {
        let mut open = self.open.values();
        let same = open
            .find(|conn| conn.group == group || conn.theirs.id == id && conn.is_from_host(from));
        same.map_or(group, |conn| conn.peer)
    }

    /// The number of the peer with this key.
    pub fn group(&mut self, key: [u8; 32]) -> GroupId {
        self.groups.number(key)
    }
}
