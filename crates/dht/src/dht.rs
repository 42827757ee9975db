//! A node of the DHT: datagrams and time in, orders and reports out.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use fastrand::Rng;

use crate::address::Address;
use crate::config::{Announce, Config};
use crate::external::Votes;
use crate::id::Id;
use crate::lookup::{Lookup, Via};
use crate::message::{Answer, Body, Fault, Message, Method, write_query};
use crate::output::{Counters, Output, SearchError, SearchId, Stats};
use crate::queries::{Expiry, Purpose, Queries};
use crate::search::{Goal, Search};
use crate::searches::Searches;
use crate::secret::Secret;
use crate::secure::{Standing, secure_id, standing};
use crate::server::{Server, refusal};
use crate::table::{K, Table};
use crate::upkeep::Upkeep;

/// A node of the DHT.
///
/// Each call adds a few outputs; the caller takes all of them with [`poll`](Self::poll) before the
/// next call.
#[derive(Debug)]
pub struct Dht<A> {
    read_only: bool,
    external: Option<A>,
    table: Table<A>,
    queries: Queries<A>,
    searches: Searches<A>,
    server: Server<A>,
    upkeep: Upkeep<A>,
    votes: Votes<A>,
    outputs: VecDeque<Output<A>>,
    counters: Counters,
    secret: Secret,
    rng: Rng,
}

impl<A: Address> Dht<A> {
    /// A node that knows no other one. `rng` must be seeded at random, and used for nothing else:
    /// secrets follow from it.
    pub fn new(config: Config<A>, rng: Rng, now: Instant) -> Self {
        let (mut secret, mut rng) = Secret::new(rng);
        let fits = |id: &Id| {
            let external = config.external;
            external.is_none_or(|addr| standing(addr, *id) != Standing::Unverified)
        };
        let id = config
            .id
            .filter(fits)
            .unwrap_or_else(|| match config.external {
                Some(addr) => secure_id(addr, &mut rng),
                None => Id::random(&mut rng),
            });
        Self {
            read_only: config.read_only,
            external: config.external,
            table: Table::new(id, now),
            queries: Queries::new(),
            searches: Searches::new(&config),
            server: Server::new(&config, &mut secret, now),
            upkeep: Upkeep::new(&mut rng, now),
            votes: Votes::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            secret,
            rng,
        }
    }

    /// The own id. It changes when others see this node under another address than it knew of.
    pub fn id(&self) -> Id {
        self.table.own()
    }

    /// The good nodes, to be saved: at most 1,280, mostly fewer than 100.
    pub fn nodes(&self, now: Instant) -> Vec<A> {
        let nodes = self.table.good(now).into_iter();
        nodes.map(|(_, addr)| addr).collect()
    }

    /// The state in numbers.
    pub fn stats(&self, now: Instant) -> Stats {
        let (good, questionable) = self.table.counts(now);
        Stats {
            good,
            questionable,
            torrents: self.server.store.torrents(),
            peers: self.server.store.peers(),
            in_flight: self.queries.len(),
            searches: self.searches.for_peers(),
            waiting: self.searches.waiting(),
            counters: self.counters,
        }
    }

    /// Adds addresses of nodes: of routers, saved ones, those of peers (`PORT` message of BEP 5).
    /// Nodes that answer enter the routing table. The last 64 addresses are remembered.
    pub fn bootstrap(&mut self, now: Instant, addrs: impl IntoIterator<Item = A>) {
        let addrs = addrs.into_iter().filter(|addr| addr.is_reachable());
        let new: Vec<A> = addrs.filter(|addr| self.upkeep.add_seed(*addr)).collect();
        if let Some(id) = self.upkeep.bootstrap() {
            if let Some(search) = self.searches.find(id) {
                let mut add = |addr| search.lookup.add(None, addr, Via::Own);
                new.into_iter().for_each(&mut add);
            }
        } else if self.table.counts(now).0 < K && self.upkeep.may_retry(now) {
            self.begin_bootstrap(now);
        } else {
            for addr in new {
                self.query(addr, &Method::Ping, Purpose::Ping, now);
            }
        }
        self.drive(now);
    }

    /// Searches for peers of a torrent, and announces this node as one of them if so wanted, to the
    /// nodes nearest to the info-hash, at most 12. It begins once the first nodes have been found,
    /// and while no more than [`Config::max_searches`] are under way.
    ///
    /// # Errors
    /// [`SearchError::TooMany`] if [`Config::max_waiting`] searches wait already.
    pub fn search(
        &mut self,
        now: Instant,
        info_hash: [u8; 20],
        announce: Option<Announce>,
    ) -> Result<SearchId, SearchError> {
        let id = self.searches.push(Id(info_hash), announce)?;
        self.drive(now);
        Ok(id)
    }

    /// Ends a search. Nothing more is reported of it, except what [`poll`](Self::poll) has not
    /// returned yet.
    pub fn cancel(&mut self, now: Instant, search: SearchId) {
        self.searches.remove(search);
        self.drive(now);
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Instant, from: A, bytes: &[u8]) {
        if !from.is_reachable() {
            return;
        }
        match Message::read(bytes) {
            Ok(message) => self.on_message(from, message, now),
            Err(Fault::Malformed) => self.counters.malformed += 1,
            Err(Fault::Query { transaction, code }) => {
                if self.may_answer(from, now) {
                    self.send(from, refusal(&transaction, code));
                }
            }
        }
        self.drive(now);
    }

    /// When [`advance`](Self::advance) is due next.
    pub fn next_due(&self) -> Instant {
        let round = self.upkeep.next_due();
        self.queries.next_due().map_or(round, |due| due.min(round))
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        while let Some(expiry) = self.queries.next_expiry(now) {
            match expiry {
                Expiry::Stalled(to, Purpose::Search(id, part)) => {
                    if let Some(search) = self.searches.find(id) {
                        search.stalled(to, part);
                    }
                }
                Expiry::Stalled(_, Purpose::Ping) => {}
                Expiry::TimedOut(to, purpose) => {
                    self.counters.timeouts += 1;
                    self.table.failed(to, now);
                    self.fail(to, purpose);
                }
            }
        }
        if self.upkeep.begin_round(now) {
            self.tend(now);
        }
        self.drive(now);
    }

    /// The next order or report.
    pub fn poll(&mut self) -> Option<Output<A>> {
        self.outputs.pop_front()
    }

    fn send(&mut self, to: A, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send { to, bytes });
    }

    fn query(&mut self, to: A, method: &Method, purpose: Purpose, now: Instant) {
        let transaction = self.secret.next_u32();
        if self.queries.add(transaction, to, purpose, now) {
            let bytes = write_query(transaction, self.table.own(), method, self.read_only);
            self.counters.queries_sent += 1;
            self.send(to, bytes);
        } else {
            self.fail(to, purpose);
        }
    }

    fn fail(&mut self, to: A, purpose: Purpose) {
        if let Purpose::Search(id, part) = purpose
            && let Some(search) = self.searches.find(id)
        {
            search.failed(to, part);
        }
    }

    fn may_answer(&mut self, to: A, now: Instant) -> bool {
        if self.read_only {
            return false;
        }
        let allowed = self.server.allows(to, now);
        match allowed {
            true => self.counters.queries_answered += 1,
            false => self.counters.queries_limited += 1,
        }
        allowed
    }

    fn on_message(&mut self, from: A, message: Message<A>, now: Instant) {
        let transaction = message.transaction;
        match message.body {
            Body::Query { id, method } => {
                if !self.may_answer(from, now) {
                    return;
                }
                let query = (from, &transaction[..]);
                let (table, rng) = (&self.table, &mut self.rng);
                let answer = self.server.answer(query, &method, table, rng, now);
                self.send(from, answer);
                if !message.read_only && self.table.asked(id, from, now) {
                    self.query(from, &Method::Ping, Purpose::Ping, now);
                }
            }
            Body::Answer(answer) => match self.queries.take(&transaction, from, now) {
                Some(query) => self.on_answer(from, query.purpose, &answer, message.ip, now),
                None => self.counters.answers_unexpected += 1,
            },
            Body::Error => match self.queries.take(&transaction, from, now) {
                Some(query) => self.fail(from, query.purpose),
                None => self.counters.answers_unexpected += 1,
            },
        }
    }

    fn on_answer(
        &mut self,
        from: A,
        purpose: Purpose,
        answer: &Answer<A>,
        seen: Option<A>,
        now: Instant,
    ) {
        self.counters.answers += 1;
        if let Some(questionable) = self.table.answered(answer.id, from, now) {
            self.query(questionable, &Method::Ping, Purpose::Ping, now);
        }
        if let Purpose::Search(id, part) = purpose
            && let Some(search) = self.searches.find(id)
        {
            let peers = search.answered(from, part, answer);
            if !peers.is_empty() {
                self.outputs.push_back(Output::Peers { search: id, peers });
            }
        }
        let seen = seen.filter(|_| self.external.is_none());
        if let Some(seen) = seen.and_then(|seen| self.votes.vote(from, seen)) {
            self.on_external(seen, now);
        }
    }

    /// Others see this node at the host `seen`: takes an id that follows from it.
    fn on_external(&mut self, seen: A, now: Instant) {
        if standing(seen, self.table.own()) == Standing::Unverified {
            let id = secure_id(seen, &mut self.rng);
            self.table.set_own(id, now);
            if self.upkeep.bootstrap().is_none() {
                self.begin_bootstrap(now);
            }
        }
    }

    /// Tends the routing table.
    fn tend(&mut self, now: Instant) {
        if self.upkeep.expiry_due(now) {
            self.server.advance(&mut self.secret, now);
        }
        if let Some(addr) = self.table.ping_due(now) {
            self.query(addr, &Method::Ping, Purpose::Ping, now);
        }
        if self.table.counts(now).0 >= K {
            self.upkeep.reset_retry();
        } else if self.upkeep.may_retry(now) {
            self.begin_bootstrap(now);
        }
        if self.upkeep.may_refresh()
            && let Some(target) = self.table.refresh_due(now, &mut self.rng)
        {
            let id = self.begin(target, Goal::Nodes, None);
            self.upkeep.begin_refresh(id);
        }
    }

    /// Searches for the own id.
    fn begin_bootstrap(&mut self, now: Instant) {
        let id = self.begin(self.table.own(), Goal::Nodes, None);
        self.upkeep.begin_bootstrap(id, now);
    }

    /// Begins a search from the nearest nodes of the routing table.
    fn begin(&mut self, target: Id, goal: Goal, id: Option<SearchId>) -> SearchId {
        // The own surroundings are known better than their average.
        let is_own = target == self.table.own() || !self.upkeep.is_settled();
        let expected = (!is_own).then(|| self.table.expected_bits());
        let mut lookup = Lookup::new(target, expected);
        let nearest = self.table.nearest(target, 2 * K);
        for (id, addr) in &nearest {
            lookup.add(Some(*id), *addr, Via::Own);
        }
        if nearest.len() < K {
            let seeds = self.upkeep.seeds();
            seeds.for_each(|addr| lookup.add(None, addr, Via::Own));
        }
        let id = id.unwrap_or_else(|| self.searches.new_id());
        self.searches.begin(id, Search::new(lookup, goal));
        id
    }

    /// Begins searches that wait, sends queries of those under way, and ends the finished ones.
    fn drive(&mut self, now: Instant) {
        loop {
            while self.upkeep.bootstrap().is_none()
                && let Some(waiting) = self.searches.pop_waiting()
            {
                let goal = Goal::Peers(waiting.announce);
                self.begin(waiting.info_hash, goal, Some(waiting.id));
            }
            let ids = self.searches.ids().into_iter();
            let finished = ids.filter(|id| self.drive_search(*id, now)).count();
            if finished == 0 {
                return;
            }
        }
    }

    /// Sends queries of a search. Returns whether it has finished.
    fn drive_search(&mut self, id: SearchId, now: Instant) -> bool {
        while self.queries.has_room()
            && let Some(search) = self.searches.find(id)
            && let Some((to, method, part)) = search.next()
        {
            self.query(to, &method, Purpose::Search(id, part), now);
        }
        let search = self.searches.find(id);
        let Some(search) = search.filter(|search| search.is_finished()) else {
            return false;
        };
        let (goal, summary) = (search.goal(), search.summary());
        self.searches.remove(id);
        self.upkeep.finished(id, summary.answered);
        if let Goal::Peers(_) = goal {
            self.outputs.push_back(Output::Finished {
                search: id,
                summary,
            });
        }
        true
    }
}
