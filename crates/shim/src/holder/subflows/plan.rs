//! Which subflows are created and destroyed. No I/O, no clock.
//!
//! A connection must never be without a subflow: the kernel gives none to a connection of which one side
//! has ended its direction (Linux 6.18 refuses them at both ends), and one that is destroyed takes the
//! last that connection had with it. So a subflow over a dead slot is destroyed only once the other side has
//! accepted another one: until then it may refuse it, however long its answer takes.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use hawser_mptcp::Token;

use crate::address::{Block, Slot};
use crate::protocol::Role;

/// Interval at which it is asked whether the other side has accepted a subflow, while others wait for that
/// to be destroyed.
const PROOF_INTERVAL: Duration = Duration::from_millis(100);
/// A connection without a subflow that works ends once so many new ones were refused, over at least this
/// time: the other side's kernel does not know the connection.
const REFUSALS: u32 = 3;
const REFUSE_TIME: Duration = Duration::from_secs(3);
/// A connection that the other side has created subflows for, and no longer does while there are paths,
/// ends after this time: many times what it takes to create one.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// Find out which subflows the other side has accepted, for [`Plan::proven`].
    Prove {
        token: Token,
    },
    /// The other side no longer knows the connection: end it.
    End {
        token: Token,
    },
}

/// The subflows of all connections, and the slots that are live.
#[derive(Debug, Default)]
pub(super) struct Plan {
    live: HashMap<Session, BTreeSet<Slot>>,
    connections: BTreeMap<Token, Connection>,
    /// Connections to look at, and those to look at later.
    changed: BTreeSet<Token>,
    later: BTreeSet<(Instant, Token)>,
    /// Whether a connection was established since that was queried.
    begun: bool,
}

#[derive(Debug)]
struct Connection {
    session: Session,
    /// Where further subflows go to.
    remote: SocketAddr,
    subflows: Vec<Subflow>,
    /// Slots over which a subflow was ordered that may still come about: the kernel sends a lost SYN
    /// again by itself.
    ordered: BTreeSet<Slot>,
    /// Slots over which none could be created, until the next retry.
    failed: BTreeSet<Slot>,
    /// Since when it has had no subflow though there are live slots.
    bare: Option<Instant>,
    refusals: Option<Refusals>,
    /// When the next question for what the other side has accepted is due, if one was asked.
    proof_due: Option<Instant>,
}

/// New subflows that the other side has refused since a connection has had none that works.
#[derive(Debug, Clone, Copy)]
struct Refusals {
    count: u32,
    first: Instant,
    last: Instant,
}

#[derive(Debug)]
struct Subflow {
    slot: Slot,
    ends: Ends,
    standing: Standing,
    /// Whether the other side is known to have it. The one that creates it has it earlier, and may be
    /// refused later, after any time.
    is_proven: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The other side has created it over a slot that is not known to be live yet.
    Early,
    Live,
    /// Its slot has died, or has another one.
    Dead,
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
    pub(super) fn established(&mut self, token: Token, role: Role, ends: Ends, now: Instant) {
        if let Some(session) = session_of(role, ends) {
            self.adopt(token, session, ends.1, &[ends]);
            self.proven(token, ends, now);
            self.begun = true;
        }
    }

    /// Takes a connection as it is, with `subflows` that are established here and a `remote` to which
    /// further ones go, in place of what was known of it.
    pub(super) fn adopt(
        &mut self,
        token: Token,
        session: Session,
        remote: SocketAddr,
        subflows: &[Ends],
    ) {
        let with_slot = |ends: &Ends| Some((slot_of(session.1, *ends)?, *ends));
        let known = subflows.iter().filter_map(with_slot);
        let subflows = known.map(|(slot, ends)| Subflow::new(slot, ends, session.1));
        let connection = Connection {
            session,
            remote,
            subflows: subflows.collect(),
            ordered: BTreeSet::new(),
            failed: BTreeSet::new(),
            bare: None,
            refusals: None,
            proof_due: None,
        };
        self.connections.insert(token, connection);
        self.changed.insert(token);
    }

    /// Whether a connection was established since the last call.
    pub(super) fn has_begun(&mut self) -> bool {
        std::mem::take(&mut self.begun)
    }

    /// A further subflow is established here. The side that has created it does not know yet whether the
    /// other one accepts it.
    pub(super) fn subflow_established(&mut self, token: Token, ends: Ends) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let role = connection.session.1;
        let Some(slot) = slot_of(role, ends) else {
            return;
        };
        connection.subflows.retain(|one| one.ends != ends);
        // One whose slot was dead meanwhile, and that was ordered again, may come about after all.
        // The side that creates subflows chooses which one ends.
        let is_surplus = role == Role::Client && connection.has_live(slot);
        let mut subflow = Subflow::new(slot, ends, role);
        if is_surplus {
            subflow.standing = Standing::Dead;
        }
        connection.subflows.push(subflow);
        connection.ordered.remove(&slot);
        // The slot may have died meanwhile.
        self.changed.insert(token);
    }

    /// The other side has accepted a subflow.
    pub(super) fn proven(&mut self, token: Token, ends: Ends, now: Instant) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let mut all = connection.subflows.iter_mut();
        if let Some(subflow) = all.find(|one| one.ends == ends && !one.is_proven) {
            subflow.is_proven = true;
            self.later.insert((now, token));
        }
    }

    /// A subflow has ended, or could not be established; `is_refused`, as the other host has nothing to
    /// add it to.
    pub(super) fn subflow_closed(
        &mut self,
        token: Token,
        ends: Ends,
        is_refused: bool,
        now: Instant,
    ) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let before = connection.subflows.len();
        // A later subflow over the same slot has another port.
        connection.subflows.retain(|one| one.ends != ends);
        if connection.subflows.len() < before {
            self.changed.insert(token);
        } else if let Some(slot) = slot_of(connection.session.1, ends)
            && connection.ordered.remove(&slot)
        {
            connection.failed.insert(slot);
            if is_refused && !connection.has_any(Standing::Live) {
                let refusals = connection.refusals.get_or_insert(Refusals {
                    count: 0,
                    first: now,
                    last: now,
                });
                refusals.count += 1;
                refusals.last = now;
                self.changed.insert(token);
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
            let complete = live.is_some_and(|live| {
                !live.is_empty() && live.iter().all(|slot| connection.has_live(*slot))
            });
            if !complete {
                self.changed.insert(*token);
            }
        }
    }

    /// When there may be something to do, if nothing happens until then.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.later.first().map(|(due, _)| *due)
    }

    /// What is to be done now.
    pub(super) fn changes(&mut self, now: Instant) -> Vec<Change> {
        while let Some((due, token)) = self.later.pop_first() {
            if due > now {
                self.later.insert((due, token));
                break;
            }
            self.changed.insert(token);
        }
        let mut changes = Vec::new();
        for token in std::mem::take(&mut self.changed) {
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            // Before the carrier has reported the session, nothing is known of its slots.
            let Some(live) = self.live.get(&connection.session) else {
                continue;
            };
            connection.judge(live);
            if connection.is_lost(live, now) {
                self.connections.remove(&token);
                changes.push(Change::End { token });
                continue;
            }
            // Created first: a connection must not be without a subflow.
            if connection.session.1 == Role::Client {
                for slot in live {
                    let waits = connection.failed.contains(slot);
                    if !connection.has_live(*slot) && !waits && connection.ordered.insert(*slot) {
                        changes.push(Change::Create {
                            token,
                            slot: *slot,
                            remote: connection.remote,
                        });
                    }
                }
            }
            connection.ordered.retain(|slot| live.contains(slot));
            if !connection.has_any(Standing::Dead) {
                continue;
            }
            if connection.has_proven() {
                let dead = (connection.subflows)
                    .extract_if(.., |one| one.standing == Standing::Dead)
                    .map(|one| Change::Destroy {
                        token,
                        ends: one.ends,
                    });
                changes.extend(dead);
            } else if connection.has_any(Standing::Live)
                && connection.proof_due.is_none_or(|due| due <= now)
            {
                let due = now + PROOF_INTERVAL;
                connection.proof_due = Some(due);
                changes.push(Change::Prove { token });
                self.later.insert((due, token));
            }
        }
        changes
    }
}

impl Connection {
    /// Whether a subflow over `slot` is there that has not died.
    fn has_live(&self, slot: Slot) -> bool {
        let mut all = self.subflows.iter();
        all.any(|one| one.slot == slot && one.standing == Standing::Live)
    }

    /// Whether a subflow over a live slot is there that the other side has accepted.
    fn has_proven(&self) -> bool {
        let mut all = self.subflows.iter();
        all.any(|one| one.is_proven && one.standing == Standing::Live)
    }

    fn has_any(&self, standing: Standing) -> bool {
        let mut all = self.subflows.iter();
        all.any(|one| one.standing == standing)
    }

    /// Says of each subflow whether its slot is live.
    fn judge(&mut self, live: &BTreeSet<Slot>) {
        for subflow in &mut self.subflows {
            subflow.standing = match (live.contains(&subflow.slot), subflow.standing) {
                (true, Standing::Early) => Standing::Live,
                // TCP waits ever longer over a path that was dead: the side that creates subflows
                // replaces it. The other one keeps what may still be the only one.
                (true, Standing::Dead) if self.session.1 == Role::Server => Standing::Live,
                (false, Standing::Live) => Standing::Dead,
                (_, same) => same,
            };
        }
    }

    /// Whether the other side no longer knows the connection.
    fn is_lost(&mut self, live: &BTreeSet<Slot>, now: Instant) -> bool {
        // Idle, the other side's kernel says nothing over those that are dead.
        let has_one = match self.session.1 {
            Role::Client => self.has_any(Standing::Live),
            Role::Server => !self.subflows.is_empty(),
        };
        if live.is_empty() || has_one {
            (self.bare, self.refusals) = (None, None);
            return false;
        }
        let since = *self.bare.get_or_insert(now);
        match (self.session.1, self.refusals) {
            (Role::Client, Some(Refusals { count, first, last })) => {
                count >= REFUSALS && last.saturating_duration_since(first) >= REFUSE_TIME
            }
            (Role::Client, None) => false,
            (Role::Server, _) => now.saturating_duration_since(since) >= ABANDON_TIMEOUT,
        }
    }
}

impl Subflow {
    fn new(slot: Slot, ends: Ends, role: Role) -> Self {
        let standing = match role {
            Role::Client => Standing::Live,
            Role::Server => Standing::Early,
        };
        Self {
            slot,
            ends,
            standing,
            // A server has only what the client has created before.
            is_proven: role == Role::Server,
        }
    }
}

/// The slot that the addresses of a subflow show.
fn slot_of(role: Role, (local, remote): Ends) -> Option<Slot> {
    let client = match role {
        Role::Client => local,
        Role::Server => remote,
    };
    match client.ip() {
        IpAddr::V6(ip) => Block::split(ip)
            .map(|(_, slot)| slot)
            .filter(|slot| *slot > 0),
        IpAddr::V4(_) => None,
    }
}

fn session_of(role: Role, ends: Ends) -> Option<Session> {
    slot_of(role, ends)?;
    match ends.1.ip() {
        IpAddr::V6(ip) => Block::split(ip).map(|(block, _)| (block.address(0), role)),
        IpAddr::V4(_) => None,
    }
}
