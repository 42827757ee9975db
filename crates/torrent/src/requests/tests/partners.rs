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

/// Longest time in seconds, counted from when the seeder that answers at once has connected. The model
/// pauses connections that compete for some tenths of a second: a tenth is added for that. Once too many
/// blocks were wasted to request any twice, the blocks of a seeder that falls silent are requested from
/// others only when it has stalled: a second is added for that.
fn most_seconds() -> f64 {
    1.1 * alone() + 1.0
}

/// What a seeder sends late, after others have sent it, neither makes it the one to ask for the last
/// blocks nor forbids to ask others for them too.
#[test]
fn late_answers_leave_the_last_blocks_to_the_seeder_that_answers_at_once() {
    let late = |ms: u32| Conduct::Late(ms * MS);
    let never = Conduct::Never;
    // How others answer, when the one that answers at once comes, and the seed.
    let cases = [
        (vec![late(4569), never], 1042, 12_180_678_484_415_861_135),
        (vec![late(6339), late(4391)], 893, 7_974_825_166_599_081_185),
        (
            vec![late(6002), late(3771), never],
            449,
            9_659_570_726_335_772_156,
        ),
        (
            vec![late(7482), never, never],
            3693,
            8_124_238_707_445_873_265,
        ),
        // It takes back blocks of one that is found to have stalled afterwards.
        (
            vec![late(1784), never, never, never],
            875,
            5_090_174_081_114_185_162,
        ),
    ];
    for (others, comes, seed) in cases {
        let mut scene = scene(&others, seed);
        let comes = comes * MS;
        scene.ledger.coming.insert(9, scene.now + comes);
        let outcome = scene.run();
        let seconds = outcome.seconds - comes.as_secs_f64();
        println!("{seconds:.3} s: {others:?} {outcome:?}");
        assert!(seconds <= alone() + 0.5, "{others:?} {outcome:?}");
    }
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
        let most = comes.as_secs_f64() + most_seconds();
        prop_assert!(outcome.seconds <= most, "{outcome:?}");
        let twice = others.contains(&Conduct::Twice);
        let copies = outcome.uncancelled + if twice { SMALL } else { 0 };
        // Eight blocks may be wasted; as many may be under way once they are, and each may be
        // answered twice.
        let repeated = u64::from(BLOCK) * if twice { 32 } else { 16 };
        prop_assert!(outcome.wasted <= copies + repeated, "{outcome:?}");
    }
}
