//! Lending between a holder and its carriers, one after the other, on virtual time: random operations,
//! crashes of the carrier and broken connections at any moment.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::*;

const CONNECTIONS: usize = 6;
const LIMIT: usize = 3;

/// A direction: bytes are numbers in order, and none may be lost or repeated.
#[derive(Default)]
struct Direction {
    next: u32,
    pipe: VecDeque<u32>,
    /// How many have arrived.
    arrived: u32,
}

impl Direction {
    /// One step of the carrier: from socket to pipe, or from pipe to socket.
    fn splice(&mut self, is_in: bool) {
        if is_in {
            self.pipe.push_back(self.next);
            self.next += 1;
        } else if let Some(byte) = self.pipe.pop_front() {
            self.arrive(byte);
        }
    }

    /// The holder copies: first what the pipe has.
    fn copy(&mut self) {
        while let Some(byte) = self.pipe.pop_front() {
            self.arrive(byte);
        }
        self.arrive(self.next);
        self.next += 1;
    }

    fn arrive(&mut self, byte: u32) {
        assert_eq!(
            byte, self.arrived,
            "bytes are lost, repeated or out of order"
        );
        self.arrived += 1;
    }
}

/// A carrier, and the channel to it.
struct Carrier {
    ledger: Ledger<usize>,
    borrowings: Option<Borrowings<usize>>,
    /// Whether the holder's end is closed for writing.
    is_shut: bool,
    to_carrier: VecDeque<(Message, usize)>,
    to_holder: VecDeque<Message>,
}

/// What the holder knows of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Copier {
    Holder,
    /// Lent over the channel of this carrier.
    Lent(usize, LoanId),
}

struct World {
    now: Duration,
    random: fastrand::Rng,
    connections: Vec<(Copier, Direction)>,
    carriers: Vec<Carrier>,
    lent: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            now: Duration::ZERO,
            random: fastrand::Rng::with_seed(seed),
            connections: (0..CONNECTIONS)
                .map(|_| (Copier::Holder, Direction::default()))
                .collect(),
            carriers: Vec::new(),
            lent: 0,
        };
        world.attach();
        world
    }

    /// Another carrier takes the place of the last one, which may still run: only their other connection
    /// is known to be broken.
    fn attach(&mut self) {
        self.carriers.push(Carrier {
            ledger: Ledger::new(LIMIT),
            borrowings: Some(Borrowings::new(LIMIT)),
            is_shut: false,
            to_carrier: VecDeque::new(),
            to_holder: VecDeque::new(),
        });
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(self.random.u64(0..400));
        let which = self.random.usize(0..self.carriers.len());
        let connection = self.random.usize(0..CONNECTIONS);
        match self.random.u32(0..100) {
            0..20 => self.lend(connection),
            20..30 => self.recall(connection),
            30..50 => self.deliver_to_carrier(which),
            50..65 => self.deliver_to_holder(which),
            65..70 => self.give_back(which),
            70..72 => self.end_carrier(which),
            72 => self.carriers[which].is_shut = true,
            73 if self.carriers.len() < 20 => self.attach(),
            _ => self.copy(),
        }
        self.check();
    }

    fn lend(&mut self, connection: usize) {
        let last = self.carriers.len() - 1;
        let carrier = &mut self.carriers[last];
        if self.connections[connection].0 != Copier::Holder {
            return;
        }
        match carrier.ledger.lend(self.now, connection) {
            // The message is sent, or the loan is cancelled, before anything else happens.
            Lend::Granted(id) if carrier.is_shut => carrier.ledger.cancel(id),
            Lend::Granted(id) => {
                carrier
                    .to_carrier
                    .push_back((Message::Lend(id), connection));
                self.connections[connection].0 = Copier::Lent(last, id);
                self.lent += 1;
            }
            Lend::Full(oldest) => {
                assert_eq!(carrier.ledger.len(), LIMIT);
                let recalls = oldest.map(|id| (Message::Recall(id), 0));
                carrier.to_carrier.extend(recalls);
            }
            Lend::Closed => {}
        }
    }

    fn recall(&mut self, connection: usize) {
        if let Copier::Lent(which, id) = self.connections[connection].0 {
            let carrier = &mut self.carriers[which];
            if carrier.ledger.recall(id) {
                carrier.to_carrier.push_back((Message::Recall(id), 0));
            }
        }
    }

    fn deliver_to_carrier(&mut self, which: usize) {
        let carrier = &mut self.carriers[which];
        let Some(borrowings) = &mut carrier.borrowings else {
            // Lost, as what was sent before.
            return carrier.to_carrier.clear();
        };
        match carrier.to_carrier.pop_front() {
            Some((Message::Lend(id), connection)) => {
                borrowings.on_lend(id, connection).unwrap();
            }
            Some((Message::Recall(id), _)) => {
                let returned = borrowings.give_back(id).map(|_| Message::Return(id, 0));
                carrier.to_holder.extend(returned);
            }
            Some((Message::Return(..), _)) => unreachable!("no message to the carrier"),
            None if carrier.is_shut => self.end_carrier(which),
            None => {}
        }
    }

    fn deliver_to_holder(&mut self, which: usize) {
        let carrier = &mut self.carriers[which];
        let returned = match carrier.to_holder.pop_front() {
            Some(Message::Return(id, _)) => vec![carrier.ledger.on_return(id).unwrap()],
            Some(_) => unreachable!("no message to the holder"),
            None if carrier.borrowings.is_none() => carrier.ledger.on_close(),
            None => Vec::new(),
        };
        for connection in returned {
            assert!(matches!(self.connections[connection].0, Copier::Lent(of, _) if of == which));
            self.connections[connection].0 = Copier::Holder;
        }
    }

    /// A loan whose direction has ended, or carries much.
    fn give_back(&mut self, which: usize) {
        let carrier = &mut self.carriers[which];
        if let Some(borrowings) = &mut carrier.borrowings
            && let Some(id) = borrowings.loans.keys().next().copied()
        {
            borrowings.give_back(id).unwrap();
            carrier.to_holder.push_back(Message::Return(id, 0));
        }
    }

    /// The carrier crashes, or its thread ends: what it was sent is lost, what it has sent arrives.
    fn end_carrier(&mut self, which: usize) {
        let carrier = &mut self.carriers[which];
        carrier.borrowings = None;
        carrier.to_carrier.clear();
    }

    /// Each process that may copy does a step of its own for some connection.
    fn copy(&mut self) {
        let connection = self.random.usize(0..CONNECTIONS);
        let is_in = self.random.bool();
        let borrowers = self.borrowers();
        let (copier, direction) = &mut self.connections[connection];
        if *copier == Copier::Holder {
            direction.copy();
        }
        for _ in 0..*borrowers.get(&connection).unwrap_or(&0) {
            direction.splice(is_in);
        }
    }

    /// How many carriers copy each connection.
    fn borrowers(&self) -> BTreeMap<usize, usize> {
        let mut all = BTreeMap::new();
        let lent = self
            .carriers
            .iter()
            .filter_map(|one| one.borrowings.as_ref());
        for connection in lent.flat_map(|borrowings| borrowings.loans.values()) {
            *all.entry(*connection).or_insert(0) += 1;
        }
        all
    }

    fn check(&self) {
        let borrowers = self.borrowers();
        for (index, (copier, _)) in self.connections.iter().enumerate() {
            let copiers =
                usize::from(*copier == Copier::Holder) + borrowers.get(&index).unwrap_or(&0);
            assert!(copiers <= 1, "connection {index} has {copiers} copiers");
        }
        for carrier in &self.carriers {
            assert!(carrier.ledger.len() <= LIMIT);
        }
    }

    /// Once all messages have arrived and all is recalled, the holder copies everything, and nothing is lost.
    fn settle(&mut self) {
        for connection in 0..CONNECTIONS {
            self.recall(connection);
        }
        for which in 0..self.carriers.len() {
            while !self.carriers[which].to_carrier.is_empty() {
                self.deliver_to_carrier(which);
                self.check();
            }
            while !self.carriers[which].to_holder.is_empty() {
                self.deliver_to_holder(which);
                self.check();
            }
            // Those whose carrier has ended.
            self.deliver_to_holder(which);
        }
        for (copier, direction) in &mut self.connections {
            assert_eq!(*copier, Copier::Holder);
            direction.copy();
            assert_eq!(direction.arrived, direction.next);
        }
    }
}

#[test]
fn a_direction_has_one_copier_at_any_time_and_loses_nothing() {
    let mut lent = 0;
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..500 {
            world.step();
        }
        world.settle();
        lent += world.lent;
    }
    // Else nothing was tested.
    assert!(lent > 2000, "{lent} loans");
}

#[test]
fn the_oldest_loan_makes_room_once_and_not_at_once() {
    let mut ledger = Ledger::new(2);
    let seconds = Duration::from_secs;
    let Lend::Granted(first) = ledger.lend(seconds(0), "first") else {
        panic!("nothing is lent");
    };
    assert!(matches!(
        ledger.lend(seconds(0), "second"),
        Lend::Granted(_)
    ));
    assert_eq!(ledger.lend(MIN_LOAN / 2, "third"), Lend::Full(None));
    assert_eq!(ledger.lend(MIN_LOAN, "third"), Lend::Full(Some(first)));
    // It is recalled already.
    assert!(!ledger.recall(first));
    assert_ne!(ledger.lend(MIN_LOAN, "third"), Lend::Full(Some(first)));
    assert_eq!(ledger.on_return(first), Ok("first"));
    assert_eq!(ledger.on_return(first), Err(Violation::NotLent(first)));
    assert!(matches!(ledger.lend(MIN_LOAN, "third"), Lend::Granted(_)));
    assert_eq!(ledger.on_close(), ["second", "third"]);
    assert_eq!(ledger.lend(MIN_LOAN, "fourth"), Lend::Closed);
}

#[test]
fn a_holder_that_breaks_the_rules_is_refused() {
    let mut borrowings = Borrowings::new(1);
    assert!(borrowings.on_lend(LoanId(1), ()).is_ok());
    let again = borrowings.on_lend(LoanId(1), ());
    assert_eq!(again.err(), Some(Violation::LentTwice(LoanId(1))));
    let more = borrowings.on_lend(LoanId(2), ());
    assert_eq!(more.err(), Some(Violation::TooMany(1)));
    assert!(borrowings.give_back(LoanId(1)).is_some());
    assert!(borrowings.give_back(LoanId(1)).is_none());
}
