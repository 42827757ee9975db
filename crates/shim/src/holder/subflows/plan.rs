//! Which subflows are created and destroyed. No I/O, no clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hawser_mptcp::Token;

use crate::address::{Block, Slot};
use crate::link::Role;

/// A session: the peer's serving address, and this host's side.
pub(super) type Session = (Ipv6Addr, Role);

/// The addresses of a subflow: this host's, and the peer's.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Create {
        token: Token,
        slot: Slot,
        remote: SocketAddr,
    },
    Destroy {
        token: Token,
        ends: Ends,
    },
}

/// The subflows of all connections, and the slots that are live.
#[derive(Debug, Default)]
pub(super) struct Plan {
    live: HashMap<Session, BTreeSet<Slot>>,
    connections: BTreeMap<Token, Connection>,
    /// Connections to look at.
    changed: BTreeSet<Token>,
    /// Whether a connection was established since that was queried.
    begun: bool,
}

#[derive(Debug)]
struct Connection {
    session: Session,
    /// Where further subflows go to.
    remote: SocketAddr,
    /// Whether it ever had a second subflow. Until then the other side may not have confirmed it yet
    /// (RFC 8684, 3.1), and the kernel ends it with its only subflow.
    joined: bool,
    subflows: BTreeMap<Slot, Ends>,
    /// Slots over which a subflow was ordered that may still come about: the kernel sends a lost SYN
    /// again by itself.
    ordered: BTreeSet<Slot>,
    /// Slots over which none could be created, until the next retry.
    failed: BTreeSet<Slot>,
    /// Subflows over slots that have another one.
    surplus: Vec<Ends>,
}

impl Plan {
    /// Sets the live slots of a session.
    pub(super) fn set_live(&mut self, session: Session, slots: Vec<Slot>) {
        self.live.insert(session, slots.into_iter().collect());
        let all = self.connections.iter();
        let of_session = all.filter(|(_, one)| one.session == session);
        self.changed.extend(of_session.map(|(token, _)| *token));
    }

    /// Forgets the slots of a session that has ended. Its connections end as well.
    pub(super) fn forget(&mut self, session: Session) {
        self.live.remove(&session);
    }

    /// A connection is established over its first subflow.
    pub(super) fn established(&mut self, token: Token, role: Role, ends: Ends) {
        let (Some((_, slot)), Some(session)) = (slot_of(role, ends), session_of(role, ends)) else {
            return;
        };
        let connection = Connection {
            session,
            remote: ends.1,
            joined: false,
            subflows: BTreeMap::from([(slot, ends)]),
            ordered: BTreeSet::new(),
            failed: BTreeSet::new(),
            surplus: Vec::new(),
        };
        self.connections.insert(token, connection);
        self.changed.insert(token);
        self.begun = true;
    }

    /// Whether a connection was established since the last call.
    pub(super) fn has_begun(&mut self) -> bool {
        std::mem::take(&mut self.begun)
    }

    /// A further subflow is established.
    pub(super) fn subflow_established(&mut self, token: Token, ends: Ends) {
        if let Some(connection) = self.connections.get_mut(&token)
            && let Some((_, slot)) = slot_of(connection.session.1, ends)
        {
            // One whose slot was dead meanwhile, and that was ordered again, may come about after all.
            // The side that creates subflows chooses which one ends.
            let known = connection.subflows.get(&slot);
            match connection.session.1 == Role::Client && known.is_some_and(|one| *one != ends) {
                true => connection.surplus.push(ends),
                false => drop(connection.subflows.insert(slot, ends)),
            }
            connection.ordered.remove(&slot);
            connection.joined = true;
            // The slot may have died meanwhile.
            self.changed.insert(token);
        }
    }

    /// A subflow has ended, or could not be established.
    pub(super) fn subflow_closed(&mut self, token: Token, ends: Ends) {
        if let Some(connection) = self.connections.get_mut(&token)
            && let Some((_, slot)) = slot_of(connection.session.1, ends)
        {
            // A later subflow over the same slot has another port.
            if connection.subflows.get(&slot) == Some(&ends) {
                connection.subflows.remove(&slot);
            } else if connection.ordered.remove(&slot) {
                connection.failed.insert(slot);
            }
        }
    }

    /// A subflow that was ordered could not be created.
    pub(super) fn failed(&mut self, token: Token, slot: Slot) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.ordered.remove(&slot);
            connection.failed.insert(slot);
        }
    }

    /// A connection has ended.
    pub(super) fn closed(&mut self, token: Token) {
        self.connections.remove(&token);
        self.changed.remove(&token);
    }

    /// Orders again what could not be created, but not what may still come about: that would be a second
    /// subflow over the same path.
    pub(super) fn retry(&mut self) {
        for (token, connection) in &mut self.connections {
            connection.failed.clear();
            let live = self.live.get(&connection.session);
            let complete = live.is_some_and(|live| connection.subflows.keys().eq(live));
            if !complete {
                self.changed.insert(*token);
            }
        }
    }

    /// What is to be done now.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for token in std::mem::take(&mut self.changed) {
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            // Before the carrier has reported the session, nothing is known of its slots.
            let Some(live) = self.live.get(&connection.session) else {
                continue;
            };
            let subflows = std::mem::take(&mut connection.subflows);
            let (kept, dead): (BTreeMap<_, _>, BTreeMap<_, _>) =
                (subflows.into_iter()).partition(|(slot, _)| live.contains(slot));
            // The carrier sends what the only one has over another lane.
            let (kept, dead) = match connection.joined {
                true => (kept, dead),
                false => (dead.into_iter().chain(kept).collect(), BTreeMap::new()),
            };
            connection.subflows = kept;
            // Created first: a connection must not be without a subflow.
            if connection.session.1 == Role::Client {
                for slot in live {
                    let has_one = connection.subflows.contains_key(slot);
                    let waits = connection.failed.contains(slot);
                    if !has_one && !waits && connection.ordered.insert(*slot) {
                        changes.push(Change::Create {
                            token,
                            slot: *slot,
                            remote: connection.remote,
                        });
                    }
                }
            }
            connection.ordered.retain(|slot| live.contains(slot));
            let ended = dead.into_values().chain(connection.surplus.drain(..));
            changes.extend(ended.map(|ends| Change::Destroy { token, ends }));
        }
        changes
    }
}

/// The end of a subflow whose address shows the slot, and the slot.
fn slot_of(role: Role, (local, remote): Ends) -> Option<(Block, Slot)> {
    let client = match role {
        Role::Client => local,
        Role::Server => remote,
    };
    match client.ip() {
        IpAddr::V6(ip) => Block::split(ip).filter(|(_, slot)| *slot > 0),
        IpAddr::V4(_) => None,
    }
}

fn session_of(role: Role, (_, remote): Ends) -> Option<Session> {
    match remote.ip() {
        IpAddr::V6(ip) => Block::split(ip).map(|(block, _)| (block.address(0), role)),
        IpAddr::V4(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use hawser_keys::PeerKey;

    use super::*;

    const TOKEN: Token = Token(7);

    fn block(key: u8) -> Block {
        Block::of(&PeerKey([key; 32]), 0)
    }

    fn ends(slot: Slot, port: u16) -> Ends {
        let local = (block(1).address(slot), port).into();
        (local, (block(2).address(0), 1).into())
    }

    fn client() -> Session {
        (block(2).address(0), Role::Client)
    }

    fn create(slot: Slot) -> Change {
        let remote = ends(slot, 0).1;
        Change::Create {
            token: TOKEN,
            slot,
            remote,
        }
    }

    fn destroy(slot: Slot, port: u16) -> Change {
        Change::Destroy {
            token: TOKEN,
            ends: ends(slot, port),
        }
    }

    #[test]
    fn a_client_has_a_subflow_over_every_live_slot() {
        let mut plan = Plan::default();
        plan.set_live(client(), vec![1, 2, 3]);
        plan.established(TOKEN, Role::Client, ends(2, 9));
        assert_eq!(plan.changes(), [create(1), create(3)]);
        // Both may still come about.
        plan.retry();
        assert_eq!(plan.changes(), []);
        plan.subflow_established(TOKEN, ends(1, 10));
        plan.failed(TOKEN, 3);
        assert_eq!(plan.changes(), []);
        plan.retry();
        assert_eq!(plan.changes(), [create(3)]);
        // The other side refuses it.
        plan.subflow_closed(TOKEN, ends(3, 11));
        assert_eq!(plan.changes(), []);
        plan.retry();
        assert_eq!(plan.changes(), [create(3)]);
        plan.subflow_established(TOKEN, ends(3, 12));
        plan.retry();
        assert_eq!(plan.changes(), []);
    }

    #[test]
    fn subflows_over_dead_slots_are_destroyed_and_created_again() {
        let mut plan = Plan::default();
        plan.set_live(client(), vec![1, 2]);
        plan.established(TOKEN, Role::Client, ends(1, 9));
        plan.subflow_established(TOKEN, ends(2, 10));
        plan.changes();
        plan.set_live(client(), vec![2]);
        assert_eq!(plan.changes(), [destroy(1, 9)]);
        plan.subflow_closed(TOKEN, ends(1, 9));
        assert_eq!(plan.changes(), []);
        plan.set_live(client(), vec![1, 2]);
        assert_eq!(plan.changes(), [create(1)]);
        plan.subflow_established(TOKEN, ends(1, 12));
        // The end of the earlier one, reported late, is not the end of this one.
        plan.subflow_closed(TOKEN, ends(1, 9));
        plan.set_live(client(), vec![2]);
        assert_eq!(plan.changes(), [destroy(1, 12)]);
        plan.closed(TOKEN);
        plan.set_live(client(), vec![1, 2]);
        assert_eq!(plan.changes(), []);
    }

    #[test]
    fn the_only_subflow_stays_until_another_one_has_joined() {
        let mut plan = Plan::default();
        plan.set_live(client(), vec![2]);
        plan.established(TOKEN, Role::Client, ends(1, 9));
        assert_eq!(plan.changes(), [create(2)]);
        plan.failed(TOKEN, 2);
        plan.retry();
        assert_eq!(plan.changes(), [create(2)]);
        plan.subflow_established(TOKEN, ends(2, 10));
        assert_eq!(plan.changes(), [destroy(1, 9)]);
    }

    #[test]
    fn nothing_is_done_for_a_session_that_has_ended() {
        let mut plan = Plan::default();
        plan.set_live(client(), vec![1, 2]);
        plan.established(TOKEN, Role::Client, ends(1, 9));
        plan.forget(client());
        plan.retry();
        assert_eq!(plan.changes(), []);
        // Another session with the same host.
        plan.closed(TOKEN);
        plan.established(TOKEN, Role::Client, ends(1, 10));
        assert_eq!(plan.changes(), []);
        plan.set_live(client(), vec![1, 2]);
        assert_eq!(plan.changes(), [create(2)]);
    }

    #[test]
    fn a_slot_has_one_subflow() {
        let mut plan = Plan::default();
        plan.set_live(client(), vec![1, 2]);
        plan.established(TOKEN, Role::Client, ends(1, 9));
        assert_eq!(plan.changes(), [create(2)]);
        // The slot dies and comes back while the first SYN is on its way.
        plan.set_live(client(), vec![1]);
        assert_eq!(plan.changes(), []);
        plan.set_live(client(), vec![1, 2]);
        assert_eq!(plan.changes(), [create(2)]);
        plan.subflow_established(TOKEN, ends(2, 10));
        plan.subflow_established(TOKEN, ends(2, 11));
        assert_eq!(plan.changes(), [destroy(2, 11)]);
        plan.subflow_closed(TOKEN, ends(2, 11));
        plan.set_live(client(), vec![1]);
        assert_eq!(plan.changes(), [destroy(2, 10)]);
    }

    #[test]
    fn a_server_destroys_only() {
        let swap = |(local, remote): Ends| (remote, local);
        let session = (block(1).address(0), Role::Server);
        let mut plan = Plan::default();
        plan.established(TOKEN, Role::Server, swap(ends(1, 9)));
        plan.subflow_established(TOKEN, swap(ends(2, 10)));
        // Nothing is known of the session's slots yet.
        assert_eq!(plan.changes(), []);
        plan.set_live(session, vec![2, 3]);
        let dead = swap(ends(1, 9));
        assert_eq!(
            plan.changes(),
            [Change::Destroy {
                token: TOKEN,
                ends: dead
            }]
        );
    }
}
