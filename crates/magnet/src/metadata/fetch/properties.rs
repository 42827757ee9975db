//! Random peers on virtual time: while one honest peer stays, the right bytes arrive, and no honest
//! peer is banned.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use proptest::prelude::*;

use super::super::piece_length;
use super::*;

/// How a peer behaves.
#[derive(Debug, Clone, Copy)]
enum Conduct {
    Honest,
    /// Sends some pieces with a wrong byte.
    Lies,
    /// Announces another length, and sends pieces that fit it.
    LiesAboutLength(u8),
    /// Never answers.
    Mute,
    Rejects,
    /// Sends pieces of a wrong length, or with another total.
    Contradicts,
}

/// A peer of the test.
#[derive(Debug, Clone)]
struct Actor {
    conduct: Conduct,
    /// When it connects, and for how long it stays, in seconds; forever without.
    joins: u64,
    stays: Option<u64>,
    /// Longest time until it answers, in seconds.
    delay: u64,
    /// Of ten requests, how many an honest peer rejects or does not answer.
    moody: u8,
}

fn actor() -> impl Strategy<Value = Actor> {
    let conduct = prop_oneof![
        2 => Just(Conduct::Honest),
        3 => Just(Conduct::Lies),
        3 => any::<u8>().prop_map(Conduct::LiesAboutLength),
        1 => Just(Conduct::Mute),
        1 => Just(Conduct::Rejects),
        1 => Just(Conduct::Contradicts),
    ];
    let times = (0..120u64, prop::option::of(0..600u64), 0..25u64);
    (conduct, times, 0..6u8).prop_map(|(conduct, (joins, stays, delay), moody)| Actor {
        conduct,
        joins,
        stays,
        delay,
        moody,
    })
}

#[derive(Debug)]
enum Event {
    Join(usize),
    Leave(usize),
    /// An answer to a request over a connection.
    Answer(ConnectionId, u32),
}

struct World {
    info: Vec<u8>,
    actors: Vec<Actor>,
    /// The actor of each connection; it stays there when the connection has ended.
    connections: Vec<usize>,
    open: BTreeSet<ConnectionId>,
    events: BTreeMap<(Duration, u64), Event>,
    sequence: u64,
    random: Rng,
}

impl World {
    fn at(&mut self, time: Duration, event: Event) {
        self.sequence += 1;
        self.events.insert((time, self.sequence), event);
    }

    fn actor(&self, id: ConnectionId) -> &Actor {
        &self.actors[self.connections[id.0 as usize]]
    }

    fn size(&self, id: ConnectionId) -> usize {
        match self.actor(id).conduct {
            Conduct::LiesAboutLength(by) => self.info.len() + 1 + usize::from(by) * 150,
            _ => self.info.len(),
        }
    }

    /// Whether a peer has sent nothing false, whatever it was asked.
    fn is_honest(&self, id: ConnectionId) -> bool {
        let conduct = self.actor(id).conduct;
        matches!(conduct, Conduct::Honest | Conduct::Mute | Conduct::Rejects)
    }

    /// The answer to a request: bytes and total; `None` for a rejection.
    fn answer(&mut self, id: ConnectionId, piece: u32) -> Option<(Vec<u8>, u64)> {
        let (size, conduct) = (self.size(id), self.actor(id).conduct);
        let length = piece_length(size, piece);
        let start = piece as usize * METADATA_PIECE;
        let byte = |at| self.info.get(at).copied().unwrap_or(7);
        let mut bytes: Vec<u8> = (start..start + length).map(byte).collect();
        match conduct {
            Conduct::Rejects => return None,
            Conduct::Lies if self.random.bool() => bytes[self.random.usize(..length)] ^= 1,
            Conduct::Contradicts if self.random.bool() => return Some((bytes, size as u64 + 1)),
            Conduct::Contradicts => drop(bytes.pop()),
            _ => {}
        }
        Some((bytes, size as u64))
    }
}

/// Runs until the bytes are there; returns them, and the peers that were banned.
fn run(mut world: World, hashes: InfoHashes) -> (Vec<u8>, Vec<ConnectionId>, World) {
    let begun = Instant::now();
    let mut fetch = Fetch::new(hashes);
    let mut banned = Vec::new();
    for number in 0..world.actors.len() {
        let joins = Duration::from_secs(world.actors[number].joins);
        world.at(joins, Event::Join(number));
    }
    for _ in 0..300_000 {
        let due = fetch.next_due().map(|due| due - begun);
        let first = world.events.keys().next().map(|(time, _)| *time);
        let now = due
            .into_iter()
            .chain(first)
            .min()
            .expect("something to wait for");
        assert!(now < Duration::from_secs(30 * 86_400), "a month is enough");
        if first == Some(now) {
            let (_, event) = world.events.pop_first().expect("an event");
            handle(&mut world, &mut fetch, event, begun, now);
        }
        for output in fetch.advance(begun + now) {
            match output {
                Output::Ask { peer, piece } => {
                    assert!(world.open.contains(&peer), "asks one that has left");
                    let actor = world.actor(peer).clone();
                    let is_moody = world.random.u8(..10) < actor.moody;
                    if matches!(actor.conduct, Conduct::Mute) || (is_moody && piece % 2 == 0) {
                        continue;
                    }
                    let delay = Duration::from_secs(actor.delay).mul_f64(world.random.f64());
                    world.at(now + delay, Event::Answer(peer, piece));
                }
                Output::Ban(peer) => banned.push(peer),
                Output::Done(info) => return (info, banned, world),
                Output::Contradiction => panic!("the hashes are right"),
            }
        }
        assert!(fetch.candidates.len() <= MAX_CANDIDATES);
        assert!(fetch.suspects.len() <= MAX_SUSPECTS);
        let due = fetch.next_due();
        assert!(due.is_none_or(|due| due > begun + now), "due at once again");
    }
    panic!("it never ends: {fetch:?}");
}

fn handle(world: &mut World, fetch: &mut Fetch, event: Event, begun: Instant, now: Duration) {
    match event {
        Event::Join(number) => {
            let id = ConnectionId(world.connections.len() as u64);
            world.connections.push(number);
            world.open.insert(id);
            fetch.on_peer(id, world.size(id) as u64);
            if let Some(stays) = world.actors[number].stays {
                world.at(
                    now + Duration::from_secs(stays),
                    Event::Leave(id.0 as usize),
                );
            }
        }
        Event::Leave(connection) => {
            let id = ConnectionId(connection as u64);
            world.open.remove(&id);
            fetch.on_gone(id);
            // It is back some time later.
            let number = world.connections[connection];
            let later = Duration::from_secs(world.random.u64(1..1000));
            world.at(now + later, Event::Join(number));
        }
        Event::Answer(id, piece) if world.open.contains(&id) => {
            let at = begun + now;
            let twice = 1 + usize::from(world.random.u8(..4) == 0);
            for _ in 0..twice {
                match world.answer(id, piece) {
                    Some((bytes, total)) => {
                        let (total, bytes) = (Some(total), &bytes[..]);
                        let data = MetadataMessage::Data {
                            piece,
                            total,
                            bytes,
                        };
                        fetch.on_message(id, data, at);
                    }
                    None => fetch.on_message(id, MetadataMessage::Reject { piece }, at),
                }
            }
        }
        Event::Answer(..) => {}
    }
}

proptest! {
    // What liars sent is hashed again and again: a large one with many of them takes a second.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_right_bytes_arrive_while_one_honest_peer_stays(
        size in prop_oneof![8 => 1..40_000usize, 4 => 60_000..100_000usize, 1 => 100_000..200_000usize],
        actors in prop::collection::vec(actor(), 0..12),
        honest in (0..300u64, 0..25u64, 0..4u8),
        seed: u64,
        v1: bool,
    ) {
        let mut random = Rng::with_seed(seed);
        let info: Vec<u8> = (0..size).map(|_| random.u8(..)).collect();
        let hashes = match v1 {
            true => InfoHashes { v1: Some(Sha1::digest(&info).into()), v2: None },
            false => InfoHashes { v1: None, v2: Some(sha2::Sha256::digest(&info).into()) },
        };
        let (joins, delay, moody) = honest;
        let honest = Actor { conduct: Conduct::Honest, joins, stays: None, delay, moody };
        let world = World {
            info: info.clone(),
            actors: actors.into_iter().chain([honest]).collect(),
            connections: Vec::new(),
            open: BTreeSet::new(),
            events: BTreeMap::new(),
            sequence: 0,
            random,
        };
        let (fetched, banned, world) = run(world, hashes);
        prop_assert!(fetched == info);
        let distinct: BTreeSet<_> = banned.iter().collect();
        prop_assert_eq!(distinct.len(), banned.len(), "banned twice");
        for id in banned {
            prop_assert!(!world.is_honest(id), "{:?} was banned", world.actor(id));
        }
    }
}
