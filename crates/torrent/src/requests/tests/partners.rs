//! Seeders that answer late, twice or never beside one that answers at once: they hold up nothing,
//! and only copies are waste.

use proptest::prelude::*;

use super::*;

/// How a seeder answers requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Conduct {
    Prompt,
    /// Each answer is this much later, also one to a request that was cancelled meanwhile.
    Late(Duration),
    Twice,
    Never,
}

impl Conduct {
    /// How many answers there are to a request.
    pub fn copies(self) -> usize {
        match self {
            Self::Twice => 2,
            _ => 1,
        }
    }

    /// By how much later an answer comes.
    pub fn delay(self) -> Duration {
        match self {
            Self::Late(time) => time,
            _ => Duration::ZERO,
        }
    }
}

/// Bytes of the torrent.
const SMALL: u64 = 4_000_000;

/// Mbit/s of each seeder, over a bottleneck that carries all.
const UPLINK: f64 = 8.0;

/// A download of [`SMALL`] from seeders that answer so.
fn scene(conducts: &[Conduct], seed: u64) -> Scene {
    let seeders = conducts.len() as u64;
    let mut scene = Scene::with_size(SMALL, seeders, 1000.0, UPLINK, seed);
    for (seeder, conduct) in scene.seeders.values_mut().zip(conducts) {
        seeder.conduct = *conduct;
    }
    scene
}

/// Seconds in which one seeder sends the torrent.
fn alone() -> f64 {
    SMALL as f64 / (UPLINK * 125_000.0)
}

#[test]
fn one_seeder_that_answers_late_sends_everything_once() {
    for late in [1, 3, 6] {
        let late = Duration::from_secs(late);
        let outcome = scene(&[Conduct::Late(late)], 1).run();
        println!("{late:?}: {outcome:?}");
        assert_eq!(outcome.wasted, 0, "{late:?}");
    }
}

#[test]
fn one_seeder_that_answers_twice_wastes_the_copies() {
    let outcome = scene(&[Conduct::Twice], 1).run();
    println!("{outcome:?}");
    assert!(outcome.wasted <= SMALL, "{outcome:?}");
    assert!(outcome.seconds <= 2.1 * alone() + 1.0, "{outcome:?}");
}

#[test]
fn a_seeder_that_never_answers_waits_for_another() {
    let mut scene = scene(&[Conduct::Never], 1);
    let comes = Duration::from_secs(4);
    scene.ledger.coming.insert(2, scene.now + comes);
    let outcome = scene.run();
    println!("{outcome:?}");
    assert_eq!(outcome.wasted, 0);
    let most = comes.as_secs_f64() + 1.1 * alone() + 1.0;
    assert!(outcome.seconds <= most, "{outcome:?}");
}

fn conduct() -> impl Strategy<Value = Conduct> {
    prop_oneof![
        (100_u32..8000).prop_map(|late| Conduct::Late(late * MS)),
        Just(Conduct::Twice),
        Just(Conduct::Never),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The one that answers at once comes at any time.
    #[test]
    fn others_hold_up_nothing(
        seed: u64,
        comes in 0_u32..6000,
        others in prop::collection::vec(conduct(), 1..=4),
    ) {
        let mut scene = scene(&others, seed);
        let comes = comes * MS;
        scene.ledger.coming.insert(9, scene.now + comes);
        let outcome = scene.run();
        let most = comes.as_secs_f64() + 1.1 * alone() + 4.0;
        prop_assert!(outcome.seconds <= most, "{outcome:?}");
        let twice = others.contains(&Conduct::Twice);
        let copies = outcome.uncancelled + if twice { SMALL } else { 0 };
        prop_assert!(outcome.wasted <= copies + SMALL / 50, "{outcome:?}");
    }
}
