use proptest::prelude::*;

use super::*;
use crate::merkle::{HashRange, Tree};

/// Blocks of a piece.
const BLOCKS: u32 = 8;

/// Blocks of which a request names the hashes.
const PART: u32 = 4;

/// What a peer does with a request for hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    Rejects,
    IsSilent,
    Lies,
    Leaves,
}

/// A peer: what it does with requests for hashes, and in how many of 256 it sends a wrong block.
#[derive(Debug, Clone, Copy)]
struct Peer {
    manner: Manner,
    poison: u8,
}

impl Peer {
    fn is_honest(self) -> bool {
        self.poison == 0 && self.manner != Manner::Lies
    }
}

fn any_peer() -> impl Strategy<Value = Peer> {
    let manner = prop_oneof![
        Just(Manner::Answers),
        Just(Manner::Rejects),
        Just(Manner::IsSilent),
        Just(Manner::Lies),
        Just(Manner::Leaves),
    ];
    (manner, prop_oneof![Just(0), any::<u8>()]).prop_map(|(manner, poison)| Peer { manner, poison })
}

/// The requests for the hashes of the blocks of a piece, these hashes, and that of the piece.
fn hashes_of(piece: u32) -> (Vec<HashRequest>, Vec<Hash>, Hash) {
    let right = (0..BLOCKS).map(|block| [(1 + piece * BLOCKS + block) as u8; 32]);
    let right: Vec<Hash> = right.collect();
    let requests = (0..BLOCKS / PART).map(|part| HashRequest {
        root: [9; 32],
        range: HashRange {
            base: 0,
            index: piece * BLOCKS + part * PART,
            length: PART,
            proof: BLOCKS.ilog2() - 1,
        },
    });
    let expected = Tree::new(0, right.clone()).root();
    (requests.collect(), right, expected)
}

/// The true answer to a request.
fn answer(request: &HashRequest) -> Vec<Hash> {
    let (_, right, _) = hashes_of(request.range.index / BLOCKS);
    let within = HashRange {
        index: request.range.index % BLOCKS,
        ..request.range
    };
    Tree::new(0, right).hashes(&within).unwrap()
}

/// All blocks of a piece come from one peer.
fn evidence() -> Evidence {
    Evidence {
        senders: vec![Some(5); BLOCKS as usize],
        digests: None,
    }
}

/// A piece that is fetched: the sender and the hash of each block that has arrived.
type Copy = Vec<Option<(GroupId, Hash)>>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn honest_peers_are_never_banned_and_pieces_are_completed_with_the_good_blocks_kept(
        peers in prop::collection::vec(any_peer(), 0..8),
        seed: u64,
    ) {
        let honest = Peer { manner: Manner::Answers, poison: 0 };
        let peers: Vec<Peer> = peers.into_iter().chain([honest]).collect();
        let mut random = fastrand::Rng::with_seed(seed);
        // Each peer has one connection of its number.
        let mut open: Vec<u32> = (0..peers.len() as u32).collect();
        let mut banned = BTreeSet::new();
        let mut copies: Vec<Copy> = vec![vec![None; BLOCKS as usize]; 3];
        let mut complete = [false; 3];
        let mut held = HeldPieces::default();
        let mut is_held = [false; 3];
        let mut late: Vec<(u32, Vec<Hash>)> = Vec::new();
        let mut mail: Vec<(ConnId, HashRequest, Vec<Hash>)> = Vec::new();
        let mut now = Instant::now();
        for _ in 0..1000 {
            if complete.iter().all(|it| *it) {
                break;
            }
            for piece in 0..3u32 {
                let at = piece as usize;
                if complete[at] || is_held[at] {
                    continue;
                }
                let (requests, right, expected) = hashes_of(piece);
                for (block, right) in right.iter().enumerate() {
                    if copies[at][block].is_none() {
                        let from = *random.choice(&open).expect("an honest peer is there");
                        let is_wrong = random.u8(..) < peers[from as usize].poison;
                        let hash = if is_wrong { [255; 32] } else { *right };
                        copies[at][block] = Some((from, hash));
                    }
                }
                let have: Vec<Hash> = copies[at].iter().map(|it| it.unwrap().1).collect();
                if have == right {
                    complete[at] = true;
                    continue;
                }
                let senders: Vec<_> = copies[at].iter().map(|it| Some(it.unwrap().0)).collect();
                held.hold(piece, Evidence { senders, digests: None }, (requests, expected), now);
                is_held[at] = true;
                late.push((piece, have));
            }
            // The hashes of the wrong copy come before or after those of peers.
            if random.bool() {
                for (piece, have) in late.drain(..) {
                    prop_assert!(held.on_digests(piece, &have) || !is_held[piece as usize]);
                }
            }
            // Answers come in any order, late, and some of them twice.
            random.shuffle(&mut mail);
            for (conn, request, hashes) in mail.split_off(random.usize(..=mail.len())) {
                held.on_hashes(conn, &request, &hashes);
                if random.bool() {
                    mail.push((conn, request, hashes));
                }
            }
            now += Duration::from_secs(random.u64(0..4));
            let can_answer = |_| open.iter().map(|peer| ConnId::from(*peer)).collect();
            for step in held.advance(now, can_answer) {
                match step {
                    Step::Ask(conn, request) => {
                        let mut right = answer(&request);
                        match peers[conn as usize].manner {
                            Manner::Answers => mail.push((conn, request, right)),
                            Manner::Rejects => held.on_reject(conn, &request),
                            Manner::IsSilent => {}
                            Manner::Lies => {
                                let changed = random.usize(..right.len());
                                right[changed][0] ^= 1;
                                mail.push((conn, request, right));
                            }
                            Manner::Leaves => {
                                open.retain(|it| ConnId::from(*it) != conn);
                                held.on_gone(conn);
                            }
                        }
                    }
                    Step::Ban(conn) => {
                        prop_assert_eq!(peers[conn as usize].manner, Manner::Lies);
                        banned.insert(conn as u32);
                    }
                    Step::Refetch { piece, blocks, senders } => {
                        let at = piece as usize;
                        let (_, right, _) = hashes_of(piece);
                        is_held[at] = false;
                        for (block, right) in right.iter().enumerate() {
                            let (_, hash) = copies[at][block].unwrap();
                            // All wrong blocks are named, and no others.
                            prop_assert_eq!(blocks.contains(&(block as u32)), hash != *right);
                        }
                        blocks.iter().for_each(|block| copies[at][*block as usize] = None);
                        banned.extend(senders);
                    }
                    Step::GiveUp(piece, evidence) => {
                        let at = piece as usize;
                        prop_assert_eq!(evidence.senders.len(), BLOCKS as usize);
                        is_held[at] = false;
                        // It comes from one peer alone then; here from the honest one.
                        let (_, right, _) = hashes_of(piece);
                        let only = peers.len() as u32 - 1;
                        copies[at] = right.iter().map(|hash| Some((only, *hash))).collect();
                    }
                }
            }
            for peer in &banned {
                prop_assert!(!peers[*peer as usize].is_honest(), "{peer} of {peers:?}");
            }
            open.retain(|peer| !banned.contains(peer));
        }
        prop_assert_eq!(complete, [true; 3]);
    }
}

/// Requests of one peer.
fn asks(conn: ConnId, requests: &[HashRequest]) -> Vec<Step> {
    let asks = requests.iter().map(|request| Step::Ask(conn, *request));
    asks.collect()
}

#[test]
fn only_requested_hashes_count_and_late_ones_do() {
    let (requests, right, expected) = hashes_of(0);
    let (mut held, mut now) = (HeldPieces::default(), Instant::now());
    held.hold(0, evidence(), (requests.clone(), expected), now);
    let all = |_| vec![1, 2, 3];
    // Before it is asked, a peer says nothing of use and nothing false.
    held.on_hashes(1, &requests[0], &[]);
    let asked = requests
        .iter()
        .flat_map(|it| [1, 2].map(|conn| Step::Ask(conn, *it)));
    assert_eq!(held.advance(now, all), asked.collect::<Vec<_>>());
    now += ANSWER_TIMEOUT + PER_MORE_PART;
    assert_eq!(held.advance(now, all), asks(3, &requests));
    held.on_hashes(1, &requests[1], &answer(&requests[1]));
    held.on_hashes(2, &requests[0], &answer(&requests[0]));
    assert_eq!(held.advance(now, all), []);
    let mut wrong = right.clone();
    wrong[3] = [0; 32];
    wrong[6] = [0; 32];
    assert!(held.on_digests(0, &wrong));
    let refetch = Step::Refetch {
        piece: 0,
        blocks: vec![3, 6],
        senders: vec![5],
    };
    assert_eq!(held.advance(now, all), [refetch]);
    assert!(held.is_empty());
}

#[test]
fn a_false_part_shows_its_sender_and_no_sender_of_others() {
    let (requests, right, expected) = hashes_of(0);
    let (mut held, now) = (HeldPieces::default(), Instant::now());
    held.hold(0, evidence(), (requests.clone(), expected), now);
    assert_eq!(held.advance(now, |_| vec![1]), asks(1, &requests));
    held.on_hashes(1, &requests[0], &answer(&requests[0]));
    assert_eq!(held.advance(now, |_| vec![1, 2]), asks(2, &requests[1..]));
    let mut wrong = answer(&requests[1]);
    wrong[0][0] ^= 1;
    held.on_hashes(2, &requests[1], &wrong);
    // The hashes of another part are as false.
    held.on_hashes(2, &requests[1], &answer(&requests[0]));
    assert_eq!(held.advance(now, |_| vec![1]), [Step::Ban(2)]);
    held.on_hashes(1, &requests[1], &answer(&requests[1]));
    let mut copy = right.clone();
    copy[7] = [0; 32];
    assert!(held.on_digests(0, &copy));
    let steps = held.advance(now, |_| vec![1]);
    assert!(
        matches!(&steps[..], [Step::Refetch { blocks, .. }] if *blocks == [7]),
        "{steps:?}"
    );
}

#[test]
fn a_piece_is_given_up_when_no_peer_answers_for_a_part() {
    let (requests, _, expected) = hashes_of(0);
    let (mut held, now) = (HeldPieces::default(), Instant::now());
    held.hold(0, evidence(), (requests.clone(), expected), now);
    assert_eq!(held.advance(now, |_| vec![1]), asks(1, &requests));
    held.on_hashes(1, &requests[0], &answer(&requests[0]));
    held.on_reject(1, &requests[1]);
    let steps = held.advance(now, |_| vec![1]);
    assert!(matches!(steps[..], [Step::GiveUp(0, _)]), "{steps:?}");
    assert!(held.is_empty());
}
