use proptest::prelude::*;

use super::*;
use crate::merkle::Tree;

/// Layers of files with these numbers of pieces, each of two blocks.
fn trees(counts: &[u32]) -> Vec<(LayerShape, Tree)> {
    let tree = |(file, count): (u8, &u32)| {
        let node = |piece: u32| {
            let mut node = [file + 1; 32];
            node[..4].copy_from_slice(&piece.to_be_bytes());
            node
        };
        let tree = Tree::new(1, (0..*count).map(node).collect());
        let shape = LayerShape {
            root: tree.root(),
            base: 1,
            height: tree.height(),
            count: *count,
        };
        (shape, tree)
    };
    (0..).zip(counts).map(tree).collect()
}

/// What a peer does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    Rejects,
    IsSilent,
    Lies,
    Leaves,
}

fn any_manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        Just(Manner::Answers),
        Just(Manner::Rejects),
        Just(Manner::IsSilent),
        Just(Manner::Lies),
        Just(Manner::Leaves),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn layers_are_fetched_while_one_peer_answers_and_only_liars_are_banned(
        counts in prop::collection::vec(2u32..1500, 1..5),
        manners in prop::collection::vec(any_manner(), 0..8),
    ) {
        let trees = trees(&counts);
        let shapes: Vec<LayerShape> = trees.iter().map(|(shape, _)| *shape).collect();
        let mut fetch = LayerFetch::new(&shapes);
        let manners: Vec<Manner> = manners.into_iter().chain([Manner::Answers]).collect();
        (0..manners.len()).for_each(|peer| fetch.on_peer(ConnectionId(peer as u64)));
        let mut now = Instant::now();
        let mut banned = Vec::new();
        let done = 'end: {
            for _ in 0..10_000 {
                let steps = fetch.advance(now);
                if steps.is_empty() {
                    now = fetch.next_due().expect("it ends");
                }
                for step in steps {
                    let (id, request) = match step {
                        Step::Ask(id, request) => (id, request),
                        Step::Ban(id) => {
                            banned.push(id);
                            continue;
                        }
                        Step::Done(layers) => break 'end layers,
                    };
                    let tree = trees.iter().find(|(shape, _)| shape.root == request.root);
                    let mut hashes = tree.unwrap().1.hashes(&request.range).unwrap();
                    match manners[id.0 as usize] {
                        Manner::Answers => fetch.on_hashes(id, &request, &hashes),
                        Manner::Rejects => fetch.on_reject(id, &request, now),
                        Manner::IsSilent => {}
                        Manner::Leaves => fetch.on_gone(id),
                        Manner::Lies => {
                            hashes[0][31] ^= 1;
                            fetch.on_hashes(id, &request, &hashes);
                        }
                    }
                }
            }
            panic!("it never ends: {fetch:?}");
        };
        for (shape, tree) in &trees {
            prop_assert_eq!(&done[&shape.root][..], tree.lowest());
        }
        for id in banned {
            prop_assert_eq!(manners[id.0 as usize], Manner::Lies);
        }
    }
}

#[test]
fn a_late_answer_is_taken_and_another_peer_is_asked_meanwhile() {
    let trees = trees(&[700]);
    let (shape, tree) = &trees[0];
    let mut fetch = LayerFetch::new(&[*shape]);
    let (slow, quick) = (ConnectionId(1), ConnectionId(2));
    let mut now = Instant::now();
    fetch.on_peer(slow);
    let asked = fetch.advance(now);
    let [Step::Ask(_, first)] = asked[..] else {
        panic!("{asked:?}")
    };
    now += ANSWER_TIMEOUT;
    fetch.on_peer(quick);
    assert_eq!(fetch.advance(now), [Step::Ask(quick, first)]);
    let hashes = |request: &HashRequest| tree.hashes(&request.range).unwrap();
    fetch.on_hashes(slow, &first, &hashes(&first));
    assert_eq!(fetch.progress(), (1, 2));
    // The answer of the other peer comes twice.
    fetch.on_hashes(quick, &first, &hashes(&first));
    assert_eq!(fetch.progress(), (1, 2));
    let asked = fetch.advance(now);
    let [Step::Ask(_, second)] = asked[..] else {
        panic!("{asked:?}")
    };
    // What was never asked for changes nothing.
    let mut unknown = second;
    unknown.root = [0; 32];
    fetch.on_hashes(quick, &unknown, &[]);
    fetch.on_hashes(slow, &second, &hashes(&second));
    assert!(matches!(&fetch.advance(now)[..], [Step::Done(_)]));
}
