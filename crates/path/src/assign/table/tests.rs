use proptest::prelude::*;

use super::*;

/// Peers in order, each with the most paths it accepts and the links of its paths, best first.
pub(in crate::assign) type Seats = Vec<(usize, Vec<Vec<u32>>)>;

/// All links of tables in tests are less than this.
const LINKS: u32 = 12;

pub(in crate::assign) fn table(seats: &Seats) -> Table {
    let mut table = Table::new(LINKS as usize);
    for (peer, (most, paths)) in seats.iter().enumerate() {
        table.seat(Seat {
            peer,
            class: None,
            items: 0..0,
            most: *most,
            count: 0,
            turn: false,
            order: (peer as u64, peer as u64),
        });
        for links in paths {
            table.offer(links, false);
        }
    }
    table
}

/// A few peers with a few paths each over a few links, no link twice on one path.
pub(in crate::assign) fn seats() -> impl Strategy<Value = Seats> {
    let links = prop::collection::btree_set(0..LINKS, 1..5);
    let links = links.prop_map(|links| links.into_iter().collect());
    prop::collection::vec((1..4usize, prop::collection::vec(links, 0..5)), 1..8)
}

#[test]
fn blockers_are_listed_once_and_only_if_sharing_is_not_allowed() {
    let mut table = table(&vec![
        (9, vec![vec![0, 1, 2], vec![3], vec![4]]),
        (9, vec![vec![2, 1, 3], vec![5]]),
    ]);
    (0..3).for_each(|item| table.take(item));
    assert_eq!(table.blockers(3), [0, 1]);
    assert_eq!(table.sharing(3).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(!table.is_free(3) && table.is_free(4));
    table.allowed.insert((0, 3));
    assert_eq!(table.blockers(3), [1]);
    table.drop(1);
    assert!(table.is_free(3));
    table.take(3);
    assert_eq!([table.seats[0].count, table.seats[1].count], [2, 1]);
    assert!(!table.is_free(3), "it is in use");
}

#[test]
fn peers_with_a_turn_come_first() {
    let mut table = table(&vec![(1, vec![]), (1, vec![]), (1, vec![])]);
    assert_eq!(table.in_order(), [0, 1, 2]);
    table.seats[2].turn = true;
    table.seats[0].order = (7, 0);
    assert_eq!(table.in_order(), [2, 1, 0]);
}

#[test]
fn peers_with_the_fewest_paths_count_first() {
    let shared = |counts: [usize; 3]| {
        let mut table = table(&vec![(9, vec![vec![]; 9]); 3]);
        for (seat, count) in counts.into_iter().enumerate() {
            let items = table.seats[seat].items.clone();
            items.take(count).for_each(|item| table.take(item));
        }
        table.score()
    };
    assert!(shared([1, 1, 0]) > shared([2, 0, 0]));
    assert!(shared([1, 1, 1]) > shared([0, 9, 9]));
    assert!(shared([2, 2, 1]) > shared([1, 9, 1]));
    assert_eq!(shared([0, 1, 2]), shared([2, 0, 1]));
}

proptest! {
    #[test]
    fn no_more_paths_fit_together_than_the_bound(
        seats in seats(),
        order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(),
        pairs in prop::collection::vec((0..40usize, 0..40usize), 0..4),
    ) {
        let mut table = table(&seats);
        let count = table.items.len();
        let pairs = pairs.into_iter().filter(|(one, other)| one < other && *other < count);
        table.allowed = pairs.collect();
        for item in order.into_iter().filter(|item| *item < count) {
            if table.is_free(item) {
                table.take(item);
            }
        }
        let taken = table.taken.iter().filter(|taken| **taken).count();
        prop_assert!(taken <= table.most_together());
    }
}
