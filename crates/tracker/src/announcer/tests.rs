use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::message::Retry;

const MINUTE: Duration = Duration::from_secs(60);

/// A torrent on virtual time.
struct World {
    announcer: Announcer,
    now: Instant,
}

impl World {
    fn new(tiers: &[&[&str]], options: AnnounceOptions) -> Self {
        let owned = |tier: &&[&str]| tier.iter().map(|url| (*url).to_owned()).collect();
        let tiers: Vec<Vec<String>> = tiers.iter().map(owned).collect();
        let now = Instant::now();
        let identity = Identity {
            info_hash: [1; 20],
            peer_id: [2; 20],
            port: 6881,
            key: 3,
            scion: None,
        };
        let rng = Rng::with_seed(7);
        let mut announcer = Announcer::new(identity, &tiers, options, rng, now);
        announcer.on_stats(leecher(50));
        Self { announcer, now }
    }

    /// The only order due, its URL and event.
    fn one(&mut self) -> (AnnounceId, String, Event) {
        let mut orders = self.all();
        assert_eq!(orders.len(), 1, "{orders:?}");
        orders.remove(0)
    }

    fn all(&mut self) -> Vec<(AnnounceId, String, Event)> {
        let orders = self.announcer.advance(self.now).into_iter();
        let parts = |Order::Announce { id, url, request }| (id, url, request.event);
        orders.map(parts).collect()
    }

    fn answer(&mut self, id: AnnounceId, minutes: u32) {
        let answer = Answer {
            interval: Some(MINUTE * minutes),
            min_interval: Some(MINUTE * minutes / 2),
            ..Answer::default()
        };
        self.announcer.on_answer(self.now, id, Ok(&answer));
    }

    fn fail(&mut self, id: AnnounceId, error: TrackerError) {
        self.announcer.on_answer(self.now, id, Err(&error));
    }

    /// Time passes until an announce is due. Returns how much.
    fn wait(&mut self) -> Duration {
        let due = self.announcer.next_due().expect("an announce to come");
        let passed = due.saturating_duration_since(self.now);
        self.now += passed;
        passed
    }
}

fn leecher(peers: u32) -> Stats {
    Stats {
        left: 9,
        peers,
        ..Stats::default()
    }
}

fn failed() -> TrackerError {
    TrackerError::Failed("timed out".into())
}

const A: &str = "http://a/announce";
const B: &str = "udp://b:80/announce";
const C: &str = "https://c/announce";

#[test]
fn a_torrent_begins_completes_and_ends() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    let (id, url, event) = world.one();
    assert_eq!((url.as_str(), event), (A, Event::Started));
    assert_eq!(world.announcer.next_due(), None);
    world.answer(id, 30);
    assert_eq!(world.wait(), MINUTE * 30);
    let (id, _, event) = world.one();
    assert_eq!(event, Event::None);
    // It completes while an announce is under way.
    world.announcer.on_stats(Stats::default());
    world.announcer.completed(world.now);
    assert!(world.all().is_empty());
    world.answer(id, 30);
    let (id, _, event) = world.one();
    assert_eq!(event, Event::Completed);
    world.answer(id, 30);
    assert_eq!(world.wait(), MINUTE * 30);
    world.announcer.completed(world.now);
    let (id, _, event) = world.one();
    assert_eq!(event, Event::None);
    world.announcer.stop(world.now);
    assert!(!world.announcer.is_done());
    assert_eq!(world.wait(), Duration::ZERO);
    let (stop, _, event) = world.one();
    assert_eq!(event, Event::Stopped);
    world.answer(id, 30);
    assert!(!world.announcer.is_done());
    world.fail(stop, failed());
    assert!(world.announcer.is_done() && world.announcer.next_due().is_none());
    assert!(world.all().is_empty());
}

#[test]
fn a_seeder_never_reports_that_it_completed() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    world.announcer.on_stats(Stats::default());
    let (id, _, event) = world.one();
    assert_eq!(event, Event::Started);
    world.announcer.completed(world.now);
    world.answer(id, 10);
    assert_eq!(world.wait(), MINUTE * 10);
    assert_eq!(world.one().2, Event::None);
}

#[test]
fn the_tracker_that_answers_comes_first_in_its_tier() {
    let mut world = World::new(&[&[A, B], &[C]], AnnounceOptions::default());
    let (first, first_url, _) = world.one();
    world.fail(first, failed());
    let (second, second_url, event) = world.one();
    assert_eq!(event, Event::Started);
    assert_ne!(first_url, second_url);
    assert_ne!(second_url, C);
    world.answer(second, 30);
    assert_eq!(world.wait(), MINUTE * 30);
    let (again, url, event) = world.one();
    assert_eq!((&url, event), (&second_url, Event::None));
    // Both fail: the next tier. Later the first tier is tried again.
    world.fail(again, failed());
    let (other, url, _) = world.one();
    assert_eq!(url, first_url);
    world.fail(other, failed());
    let (id, url, event) = world.one();
    assert_eq!((url.as_str(), event), (C, Event::Started));
    world.answer(id, 30);
    world.wait();
    assert_eq!(world.one().1, second_url);
    // Two know of the client, and the one under way is one of them.
    world.announcer.stop(world.now);
    let stopped = world.all();
    assert_eq!(stopped.len(), 2);
    assert!(
        stopped
            .iter()
            .all(|(_, url, event)| *url != first_url && *event == Event::Stopped)
    );
}

#[test]
fn all_tiers_are_asked_if_wanted() {
    let options = AnnounceOptions {
        all_tiers: true,
        ..AnnounceOptions::default()
    };
    let mut world = World::new(&[&[A], &[B, C, A]], options);
    let orders = world.all();
    assert_eq!(orders.len(), 2);
    for (id, ..) in orders {
        world.answer(id, 30);
    }
    assert_eq!(world.wait(), MINUTE * 30);
    assert_eq!(world.all().len(), 2);
}

#[test]
fn pauses_after_failures_grow_and_are_bounded() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    let mut before = Duration::ZERO;
    for _ in 0..20 {
        let (id, _, event) = world.one();
        assert_eq!(event, Event::Started);
        world.fail(id, failed());
        let pause = world.wait();
        assert!(
            pause >= before.min(MINUTE * 45) && pause <= MINUTE * 75,
            "{pause:?}"
        );
        before = pause;
    }
    let status = &world.announcer.status()[0];
    assert_eq!((status.state, status.failures), (TrackerState::Failing, 20));
    assert_eq!(
        status.error.as_ref().map(|(_, text)| text.as_str()),
        Some("timed out")
    );
    assert_eq!(status.next, Some(world.now));
    let (id, ..) = world.one();
    world.answer(id, 30);
    assert_eq!(world.announcer.status()[0].state, TrackerState::Working);
}

fn refused(retry: Retry) -> TrackerError {
    TrackerError::Refused {
        reason: "no".into(),
        retry,
    }
}

/// As that of WebTorrent (`bittorrent-tracker`) does.
#[test]
fn a_tracker_that_refuses_a_client_without_a_port_is_asked_with_one() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    world.announcer.identity.port = 0;
    let ask = |world: &mut World| {
        let mut orders = world.announcer.advance(world.now);
        assert_eq!(orders.len(), 1, "{orders:?}");
        let Order::Announce { id, request, .. } = orders.remove(0);
        (id, request.port, request.event)
    };
    let (id, port, _) = ask(&mut world);
    assert_eq!(port, 0);
    world.fail(id, refused(Retry::Never));
    assert_eq!(world.wait(), Duration::ZERO);
    let (id, port, event) = ask(&mut world);
    assert_eq!((port, event), (1, Event::Started));
    world.answer(id, 30);
    assert_eq!(world.announcer.status()[0].state, TrackerState::Working);
    world.wait();
    let (id, port, _) = ask(&mut world);
    assert_eq!(port, 1);
    // A refusal that has other reasons is one.
    world.fail(id, refused(Retry::Never));
    assert_eq!(world.announcer.next_due(), None);
}

#[test]
fn refusals_are_obeyed() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    let (id, ..) = world.one();
    world.fail(id, refused(Retry::After(MINUTE * 7)));
    assert_eq!(world.wait(), MINUTE * 7);
    let (id, ..) = world.one();
    world.fail(id, refused(Retry::Never));
    assert_eq!(world.announcer.next_due(), None);
    assert_eq!(world.announcer.status()[0].state, TrackerState::Unused);
    world.announcer.stop(world.now);
    assert!(world.announcer.is_done());
}

#[test]
fn few_peers_are_reason_to_ask_sooner() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    world.announcer.on_stats(leecher(0));
    let (id, ..) = world.one();
    world.answer(id, 30);
    assert_eq!(world.wait(), MINUTE * 15);
    world.announcer.on_stats(leecher(50));
    assert_eq!(world.wait(), MINUTE * 15);
    let (id, ..) = world.one();
    // The bounds hold against a tracker that wishes nonsense.
    world.announcer.on_stats(leecher(0));
    let answer = Answer {
        interval: Some(Duration::from_secs(1)),
        min_interval: Some(Duration::from_secs(1)),
        ..Answer::default()
    };
    world.announcer.on_answer(world.now, id, Ok(&answer));
    assert_eq!(world.wait(), MINUTE);
    let (id, ..) = world.one();
    world.answer(id, 1_000_000);
    assert_eq!(world.wait(), MINUTE * 180);
    let (id, ..) = world.one();
    world.answer(id, 30);
    world.announcer.on_stats(leecher(50));
    world.announcer.refresh(world.now);
    assert_eq!(world.wait(), MINUTE * 15);
}

#[test]
fn urls_that_cannot_be_asked_are_left_out() {
    let mut world = World::new(
        &[&["wss://x/", "nonsense"], &[B]],
        AnnounceOptions::default(),
    );
    assert_eq!(world.one().1, B);
    let status = world.announcer.status();
    assert_eq!(status[0].state, TrackerState::Unused);
    assert!(
        status[0]
            .warning
            .as_ref()
            .is_some_and(|text| text.contains("wss://x/"))
    );
    assert_eq!(
        (status[2].state, status[2].tier),
        (TrackerState::Announcing, 1)
    );
    assert_eq!((status[0].asked, status[2].asked), (None, Some(world.now)));
    let none = World::new(&[&["wss://x/"], &[]], AnnounceOptions::default());
    assert_eq!(none.announcer.next_due(), None);
}

fn tiers(tiers: &[&[&str]]) -> Vec<Vec<String>> {
    let owned = |tier: &&[&str]| tier.iter().map(|url| (*url).to_owned()).collect();
    tiers.iter().map(owned).collect()
}

#[test]
fn other_trackers_are_told_and_those_that_stay_are_not_pressed() {
    let options = AnnounceOptions {
        all_tiers: true,
        ..AnnounceOptions::default()
    };
    let mut world = World::new(&[&[A]], options);
    let (id, ..) = world.one();
    world.answer(id, 30);
    world
        .announcer
        .set_trackers(&tiers(&[&[A], &[B]]), world.now);
    let (in_flight, url, event) = world.one();
    assert_eq!((url.as_str(), event), (B, Event::Started));
    // The next message waits for the answer: it must not arrive before the one under way.
    world.announcer.set_trackers(&tiers(&[&[C, A]]), world.now);
    assert!(world.all().is_empty());
    let status = world.announcer.status();
    let states: Vec<_> = status.iter().map(|it| (&*it.url, it.state)).collect();
    let expected = [(C, TrackerState::Idle), (A, TrackerState::Working)];
    assert_eq!(states, expected);
    world.answer(in_flight, 30);
    let (stop, url, event) = world.one();
    assert_eq!((url.as_str(), event), (B, Event::Stopped));
    // The torrent has it again before it has answered.
    world.announcer.set_trackers(&tiers(&[&[B]]), world.now);
    let (other, url, event) = world.one();
    assert_eq!((url.as_str(), event), (A, Event::Stopped));
    world.answer(stop, 30);
    let (id, url, event) = world.one();
    assert_eq!((url.as_str(), event), (B, Event::Started));
    world.answer(id, 30);
    world.fail(other, failed());
    world.announcer.set_trackers(&tiers(&[&[B]]), world.now);
    assert_eq!(world.wait(), MINUTE * 30);
    world.announcer.set_trackers(&[], world.now);
    assert_eq!(world.one().2, Event::Stopped);
    world.announcer.stop(world.now);
    assert_eq!(world.one().2, Event::Stopped);
}

#[test]
fn trackers_that_are_not_those_of_the_torrent_any_more_are_bounded() {
    let mut world = World::new(&[&[A]], AnnounceOptions::default());
    for round in 0..2 * MAX_TRACKERS {
        world.all();
        let next = tiers(&[&[&format!("http://a/{round}")]]);
        world.announcer.set_trackers(&next, world.now);
        assert_eq!(world.announcer.status().len(), 1);
    }
    assert_eq!(world.announcer.trackers.len(), 1 + MAX_TRACKERS);
}

/// Lists of trackers to change to.
const LISTS: [&[&[&str]]; 5] = [&[&[A, B], &[C]], &[&[A], &[B, C]], &[&[C]], &[&[B, A]], &[]];

#[derive(Debug, Clone)]
enum Step {
    Trackers(usize),
    Wait(u16),
    ToDue,
    Answer(usize, u16, u16),
    Fail(usize, u8),
    Stats(bool, u8),
    Completed,
    Refresh,
    Stop,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<u16>().prop_map(Step::Wait),
        6 => Just(Step::ToDue),
        6 => (0usize..4, any::<u16>(), any::<u16>()).prop_map(|(a, b, c)| Step::Answer(a, b, c)),
        4 => (0usize..4, any::<u8>()).prop_map(|(a, b)| Step::Fail(a, b)),
        2 => (any::<bool>(), 0u8..20).prop_map(|(a, b)| Step::Stats(a, b)),
        1 => (0..LISTS.len()).prop_map(Step::Trackers),
        1 => Just(Step::Completed),
        1 => Just(Step::Refresh),
        1 => Just(Step::Stop),
    ]
}

proptest! {
    #[test]
    fn trackers_are_never_pressed(
        steps in proptest::collection::vec(any_step(), 1..150), all_tiers: bool, stops: bool,
    ) {
        let options = AnnounceOptions { all_tiers, ..AnnounceOptions::default() };
        let mut list = LISTS[0];
        let (mut world, mut is_changed) = (World::new(list, options), false);
        let mut open: Vec<(AnnounceId, String, Event)> = Vec::new();
        let mut stopped = false;
        // When a tracker was last asked without an event.
        let mut regular: HashMap<String, Instant> = HashMap::new();
        for step in steps {
            match step {
                Step::Trackers(at) if !stopped => {
                    world.announcer.set_trackers(&tiers(LISTS[at]), world.now);
                    (list, is_changed) = (LISTS[at], true);
                }
                Step::Trackers(_) => {}
                Step::Wait(seconds) => world.now += Duration::from_secs(seconds.into()),
                Step::ToDue => {
                    if let Some(due) = world.announcer.next_due() {
                        world.now = world.now.max(due);
                    }
                }
                Step::Answer(at, interval, min) if at < open.len() => {
                    let (id, ..) = open.swap_remove(at);
                    let answer = Answer {
                        interval: Some(Duration::from_secs(interval.into())),
                        min_interval: Some(Duration::from_secs(min.into())),
                        ..Answer::default()
                    };
                    world.announcer.on_answer(world.now, id, Ok(&answer));
                    // Repeated, it changes nothing.
                    let due = world.announcer.next_due();
                    world.announcer.on_answer(world.now, id, Err(&failed()));
                    prop_assert_eq!(world.announcer.next_due(), due);
                }
                Step::Fail(at, minutes) if at < open.len() => {
                    let (id, ..) = open.swap_remove(at);
                    let error = match minutes {
                        0..128 => failed(),
                        minutes => TrackerError::Refused {
                            reason: String::new(),
                            retry: Retry::After(MINUTE * minutes.into()),
                        },
                    };
                    world.fail(id, error);
                }
                Step::Answer(..) | Step::Fail(..) => {}
                Step::Stats(seeder, peers) => world.announcer.on_stats(Stats {
                    left: u64::from(!seeder),
                    peers: peers.into(),
                    ..Stats::default()
                }),
                Step::Completed => world.announcer.completed(world.now),
                Step::Refresh => world.announcer.refresh(world.now),
                Step::Stop if stops => {
                    world.announcer.stop(world.now);
                    stopped = true;
                }
                Step::Stop => {}
            }
            let orders = world.all();
            for (_, url, event) in &orders {
                let is_listed = list.concat().contains(&&**url);
                prop_assert_eq!(*event == Event::Stopped, stopped || !is_listed);
                if *event == Event::None {
                    let before = regular.insert(url.clone(), world.now);
                    let least = Duration::from_secs(15);
                    prop_assert!(before.is_none_or(|before| world.now - before >= least));
                }
            }
            open.extend(orders);
            for (_, url, event) in &open {
                let same = open.iter().filter(|it| it.1 == *url).count();
                prop_assert!(same == 1 || stopped, "{} {:?}", url, event);
            }
            if !stopped && !is_changed {
                prop_assert!(open.len() <= 1 + usize::from(all_tiers));
            }
            // What was due is ordered: the next is in the future.
            let due = world.announcer.next_due();
            prop_assert!(due.is_none_or(|due| due > world.now), "due {:?}", due);
            prop_assert!(stopped || list.is_empty() || due.is_some() || !open.is_empty());
            let next = world.announcer.status().into_iter().filter_map(|status| status.next).min();
            prop_assert_eq!(next, due);
        }
        world.announcer.stop(world.now);
        for (id, ..) in world.all().into_iter().chain(open) {
            world.fail(id, failed());
        }
        prop_assert!(world.announcer.is_done());
    }
}
