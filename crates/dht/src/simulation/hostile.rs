//! Hostile nodes.

use fastrand::Rng;

use super::Numbered;
use crate::id::Id;
use crate::message::{Body, Found, Message, Method, Node, write_answer, write_query};
use crate::secure::secure_id;

/// How a node is hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Names nodes near to the target that do not exist.
    Inventor,
    /// Names others of its kind, which have the ids that they are named with, all near to the
    /// target; takes announcements and forgets them.
    Colluder,
    /// Gives tokens that are not valid, announces with such, and floods others with queries.
    Flooder,
}

/// A hostile node.
#[derive(Debug)]
pub(super) struct Hostile<A> {
    own: A,
    id: Id,
    number: u32,
    manner: Manner,
    /// Others of its kind.
    others: Vec<(u32, A)>,
    begun: bool,
}

impl<A: Numbered> Hostile<A> {
    pub fn new((own, number): (A, u32), nodes: usize, rng: &mut Rng) -> Self {
        // The hostile nodes of a scenario have the last numbers of each hundred.
        let others = (1..=nodes as u32).filter(|one| (one - 1) % 100 >= 80);
        let others = others.map(|one| (one, A::numbered(one)));
        Self {
            own,
            id: secure_id(own, rng),
            number,
            manner: [
                Manner::Inventor,
                Manner::Colluder,
                Manner::Colluder,
                Manner::Flooder,
            ][number as usize % 4],
            others: others
                .filter(|(one, _)| [1, 2].contains(&(one % 4)))
                .collect(),
            begun: false,
        }
    }

    /// What it sends every 10 seconds.
    pub fn advance(&mut self, alive: &[A], rng: &mut Rng) -> Vec<(A, Vec<u8>)> {
        let mut choose = |count: usize| {
            let some = (0..count).map(|_| alive[rng.usize(..alive.len())]);
            some.collect::<Vec<A>>()
        };
        let ping = |to| (to, write_query(1, self.id, &Method::Ping, false));
        if !std::mem::replace(&mut self.begun, true) {
            // Into the routing tables of others.
            return choose(30).into_iter().map(ping).collect();
        }
        if self.manner != Manner::Flooder || self.number % 16 != 3 {
            return choose(1).into_iter().map(ping).collect();
        }
        let victim = choose(1)[0];
        let announce = |_| {
            let method = Method::Announce {
                info_hash: Id::random(rng),
                port: None,
                token: vec![1; 8],
            };
            (victim, write_query(1, self.id, &method, false))
        };
        (0..100).map(announce).collect()
    }

    /// The answer to a datagram.
    pub fn answer(&mut self, from: A, bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
        let message = Message::<A>::read(bytes).ok()?;
        let Body::Query { method, .. } = message.body else {
            return None;
        };
        let (target, wants_peers) = match method {
            Method::FindNode(target) => (target, false),
            Method::GetPeers(target) => (target, true),
            Method::Ping => {
                let found = Found::default();
                return Some(write_answer(&message.transaction, self.id, from, &found));
            }
            Method::Announce { .. } if self.manner == Manner::Flooder => return None,
            Method::Announce { .. } => {
                let found = Found::default();
                return Some(write_answer(&message.transaction, self.id, from, &found));
            }
        };
        let (id, nodes) = match self.manner {
            Manner::Inventor => (self.id, self.invented(target, rng)),
            Manner::Colluder => (false_id(target, self.number), self.colluding(target, rng)),
            Manner::Flooder => (self.id, Vec::new()),
        };
        let fake = |_| A::numbered(rng.u32(1_000_000..2_000_000));
        let values = match wants_peers && self.manner != Manner::Flooder {
            true => (0..30).map(fake).collect(),
            false => Vec::new(),
        };
        let found = Found {
            nodes: Some(nodes),
            values,
            token: wants_peers.then_some([7; 8]),
        };
        Some(write_answer(&message.transaction, id, from, &found))
    }

    /// Nodes near to the target that do not exist; half of them have ids that follow from their
    /// addresses and are as near as a few attempts make them.
    fn invented(&self, target: Id, rng: &mut Rng) -> Vec<Node<A>> {
        let node = |at| {
            let addr = A::numbered(rng.u32(1_000_000..2_000_000));
            if at % 2 == 0 {
                return (target.random_beside(rng.u32(10..40), rng), addr);
            }
            let tries = (0..30).map(|_| A::numbered(rng.u32(1_000_000..2_000_000)));
            let tries: Vec<A> = tries.collect();
            let nodes = tries.into_iter().map(|addr| (secure_id(addr, rng), addr));
            nodes.min_by_key(|(id, _)| id.distance(target)).unwrap()
        };
        (0..8).map(node).collect()
    }

    fn colluding(&self, target: Id, rng: &mut Rng) -> Vec<Node<A>> {
        let choose = |_| self.others[rng.usize(..self.others.len())];
        let chosen = (0..8).map(choose).filter(|(_, addr)| *addr != self.own);
        chosen
            .map(|(number, addr)| (false_id(target, number), addr))
            .collect()
    }
}

/// The id that a colluder pretends to have: near to the target, plausibly so for some.
fn false_id(target: Id, number: u32) -> Id {
    let mut rng = Rng::with_seed(number.into());
    target.random_beside(12 + number % 8, &mut rng)
}
