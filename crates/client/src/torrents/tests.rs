//! Random commands and events on virtual time, with invariants after each; and the cases that matter
//! most, one by one.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::record::{Choice, Dates, SeedChoice, SeedLimit, Totals};
use crate::settings::{RateChange, RateChanges, Settings};

fn hash(number: u8) -> InfoHash {
    InfoHash([number; 20])
}

fn record(number: u8) -> Record {
    Record {
        info_hash: hash(number),
        name: format!("torrent {number}"),
        origin: Origin::Metainfo,
        size: Some(1000),
        folder: "/downloads".into(),
        started: true,
        outcome: None,
        labels: Vec::new(),
        settings: Settings::default(),
        rank: 0,
        peers: Vec::new(),
        dates: Dates::default(),
        totals: Totals::default(),
        pending: None,
    }
}

fn traffic(uploaded: u64, downloaded: u64) -> Traffic {
    let verified = Some(downloaded);
    Traffic {
        uploaded,
        downloaded,
        verified,
    }
}

/// What a caller has: tasks, and records on disk.
#[derive(Debug, Default)]
struct Host {
    now: u64,
    disk: BTreeMap<InfoHash, Record>,
    /// The tasks, each with whether it only verifies and whether it was ordered to end.
    tasks: BTreeMap<InfoHash, Task>,
    /// The settings that each task obeys.
    obeyed: BTreeMap<InfoHash, Settings>,
    /// The limits of all torrents: on disk, and in force.
    rates_on_disk: Option<RateLimits>,
    rates_in_force: Option<RateLimits>,
    moves: Vec<InfoHash>,
    removals: Vec<InfoHash>,
    /// Every order carried out.
    log: Vec<Order>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Task {
    verifies: bool,
    halts: bool,
    checked: bool,
}

impl Host {
    fn now(&self) -> Now {
        Now {
            elapsed: Duration::from_secs(self.now),
            unix: 1_700_000_000 + self.now,
        }
    }

    /// Carries out what is ordered, and checks that each order can be.
    fn obey(&mut self, torrents: &mut Torrents) {
        for order in torrents.advance(self.now()) {
            self.log.push(order);
            match order {
                Order::Save(hash) => {
                    let record = torrents.record(hash).expect("a record to save");
                    self.disk.insert(hash, record.clone());
                }
                Order::SaveRates => self.rates_on_disk = Some(torrents.all_rates()),
                Order::LimitAll => self.rates_in_force = Some(torrents.all_rates()),
                Order::Apply(hash) => {
                    let task = self.tasks.get(&hash).expect("a task to obey");
                    assert!(!task.halts && !task.verifies);
                    let settings = torrents.record(hash).expect("a record").settings.clone();
                    assert_ne!(self.obeyed.insert(hash, settings.clone()), Some(settings));
                }
                Order::Run(hash) | Order::Verify(hash) => {
                    let settings = torrents.record(hash).expect("a record").settings.clone();
                    self.obeyed.insert(hash, settings);
                    assert!(
                        self.disk.contains_key(&hash),
                        "it runs before it is on disk"
                    );
                    let verifies = matches!(order, Order::Verify(_));
                    let task = Task {
                        verifies,
                        ..Task::default()
                    };
                    assert!(self.tasks.insert(hash, task).is_none(), "it runs twice");
                    assert!(!self.moves.contains(&hash) && !self.removals.contains(&hash));
                }
                Order::Halt(hash) => {
                    let task = self.tasks.get_mut(&hash).expect("a task to end");
                    assert!(
                        !std::mem::replace(&mut task.halts, true),
                        "it is ended twice"
                    );
                }
                Order::Move(hash) => {
                    assert!(!self.tasks.contains_key(&hash) && !self.moves.contains(&hash));
                    let pending = &self.disk[&hash].pending;
                    assert!(
                        matches!(pending, Some(Pending::Move(_))),
                        "not saved before"
                    );
                    self.moves.push(hash);
                }
                Order::Remove(hash) => {
                    assert!(!self.tasks.contains_key(&hash) && !self.removals.contains(&hash));
                    let pending = &self.disk[&hash].pending;
                    assert!(
                        matches!(pending, Some(Pending::Remove { .. })),
                        "not saved before"
                    );
                    self.removals.push(hash);
                }
            }
        }
    }

    /// What must hold whenever all orders are carried out.
    fn check(&self, torrents: &Torrents, added: &[InfoHash]) {
        let there: Vec<InfoHash> = torrents.hashes().collect();
        assert_eq!(
            there.len(),
            torrents.entries.len(),
            "the queue has each once"
        );
        for hash in added {
            assert!(there.contains(hash), "{hash} is forgotten");
        }
        assert_eq!(
            there.len(),
            added.len(),
            "{there:?} has more than {added:?}"
        );
        assert!(
            self.disk.keys().eq(torrents
                .entries
                .keys()
                .collect::<std::collections::BTreeSet<_>>())
        );
        for (position, hash) in there.iter().enumerate() {
            assert_eq!(torrents.position(*hash), Some(position));
            let (kept, entry) = (&self.disk[hash], &torrents.entries[hash]);
            // Only numbers may wait.
            let mut kept = kept.clone();
            assert!(kept.totals == entry.record.totals || entry.unsaved_since.is_some());
            kept.totals = entry.record.totals;
            assert_eq!(kept, entry.record);
        }
        let rates = Some(torrents.all_rates());
        assert_eq!((self.rates_on_disk, self.rates_in_force), (rates, rates));
        for (hash, task) in &self.tasks {
            let wanted = &torrents.entries[hash].record.settings;
            let obeys = self.obeyed[hash].rates == wanted.rates;
            assert!(obeys || task.halts || task.verifies, "{hash}: {wanted:?}");
        }
        let bounds = torrents.bounds();
        let entries = || torrents.entries.values();
        let running = |complete| {
            entries()
                .filter(|e| e.runs() && e.is_complete() == complete)
                .count()
        };
        assert!(running(false) <= bounds.downloads && running(true) <= bounds.seeds);
        // Where nothing is about to end, no place is left free.
        let settles = entries().any(|entry| entry.activity == Activity::Halting);
        let checks = entries().filter(|entry| entry.checks()).count();
        for entry in entries().filter(|entry| entry.activity == Activity::Idle && !settles) {
            let bound = if entry.is_complete() {
                bounds.seeds
            } else {
                bounds.downloads
            };
            let may_run = entry.wants_to_run() && running(entry.is_complete()) < bound;
            let waits = (may_run || entry.to_verify) && checks < bounds.checks;
            assert!(!waits, "{:?} waits for nothing", entry.record);
        }
        for (hash, task) in &self.tasks {
            let entry = &torrents.entries[hash];
            let expected = match task.halts {
                true => entry.activity == Activity::Halting,
                false => entry.runs() || entry.activity == Activity::Verifying,
            };
            assert!(expected, "{hash} has a task and is {:?}", entry.activity);
        }
        let with_task =
            |entry: &&Entry| entry.takes_place() || entry.activity == Activity::Verifying;
        assert_eq!(entries().filter(with_task).count(), self.tasks.len());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add {
        number: u8,
        started: bool,
        magnet: bool,
    },
    Start(u8),
    Stop(u8),
    Verify(u8),
    Remove(u8, bool),
    Relocate(u8, u8, bool),
    Reorder(u8, u8),
    Limits(u8, Option<u8>),
    Rates(u8, RateChanges),
    AllRates(RateChanges),
    Bounds(usize, usize, usize),
    Resolved(u8),
    Checked(u8, bool),
    Completed(u8),
    Traffic(u8, u16, u16),
    Ended(u8, bool),
    Moved(bool),
    Removed(bool),
    Wait(u8),
    Crash,
}

fn rate_changes() -> impl Strategy<Value = RateChanges> {
    let change = || {
        let values = (proptest::option::of(0..3_u64), any::<Option<bool>>());
        values.prop_map(|(rate, holds)| RateChange { rate, holds })
    };
    (change(), change()).prop_map(|(download, upload)| RateChanges { download, upload })
}

fn step() -> impl Strategy<Value = Step> {
    let one = 0..8_u8;
    prop_oneof![
        4 => (one.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(number, started, magnet)| Step::Add { number, started, magnet }),
        2 => one.clone().prop_map(Step::Start),
        1 => one.clone().prop_map(Step::Stop),
        1 => one.clone().prop_map(Step::Verify),
        1 => (one.clone(), any::<bool>()).prop_map(|(one, content)| Step::Remove(one, content)),
        1 => (one.clone(), any::<u8>(), any::<bool>())
            .prop_map(|(one, folder, moves)| Step::Relocate(one, folder, moves)),
        2 => (one.clone(), any::<u8>()).prop_map(|(one, to)| Step::Reorder(one, to)),
        1 => (one.clone(), any::<Option<u8>>()).prop_map(|(one, ratio)| Step::Limits(one, ratio)),
        2 => (one.clone(), rate_changes()).prop_map(|(one, changes)| Step::Rates(one, changes)),
        1 => rate_changes().prop_map(Step::AllRates),
        1 => (1..4_usize, 1..4_usize, 1..3_usize).prop_map(|(a, b, c)| Step::Bounds(a, b, c)),
        2 => one.clone().prop_map(Step::Resolved),
        4 => (one.clone(), any::<bool>()).prop_map(|(one, complete)| Step::Checked(one, complete)),
        3 => one.clone().prop_map(Step::Completed),
        3 => (one.clone(), any::<u16>(), any::<u16>()).prop_map(|(one, up, down)| Step::Traffic(one, up, down)),
        4 => (one, any::<bool>()).prop_map(|(one, fails)| Step::Ended(one, fails)),
        2 => any::<bool>().prop_map(Step::Moved),
        2 => any::<bool>().prop_map(Step::Removed),
        3 => any::<u8>().prop_map(Step::Wait),
        1 => Just(Step::Crash),
    ]
}

/// Does one step, and keeps `added` as the list of torrents that must be there.
fn run(step: &Step, torrents: &mut Torrents, host: &mut Host, added: &mut Vec<InfoHash>) {
    let now = host.now();
    // Only tasks report, and what they can.
    let task = |one: u8| host.tasks.get(&hash(one)).copied();
    match *step {
        Step::Add {
            number,
            started,
            magnet,
        } => {
            let mut new = Record {
                started,
                ..record(number)
            };
            if magnet {
                (new.origin, new.size) = (Origin::Magnet("magnet:?".into()), None);
            }
            let is_new = !added.contains(&new.info_hash);
            assert_eq!(torrents.add(new).is_ok(), is_new);
            if is_new {
                added.push(hash(number));
            }
        }
        Step::Start(one) => drop(torrents.start(hash(one))),
        Step::Stop(one) => drop(torrents.stop(hash(one))),
        Step::Verify(one) => drop(torrents.verify(hash(one))),
        Step::Remove(one, content) => drop(torrents.remove(hash(one), content)),
        Step::Relocate(one, folder, moves) => {
            drop(torrents.relocate(hash(one), format!("/{folder}").into(), moves));
        }
        Step::Reorder(one, to) => {
            let to = match to {
                0 => Move::Top,
                1 => Move::Up,
                2 => Move::Down,
                3 => Move::Bottom,
                to => Move::To(to.into()),
            };
            drop(torrents.reorder(hash(one), to));
        }
        Step::Limits(one, ratio) => {
            let ratio = ratio.map_or(Choice::Default, |ratio| Choice::Own(f64::from(ratio)));
            let limits = SeedChoice {
                ratio,
                time: Choice::Own(100),
            };
            drop(torrents.set_limits(hash(one), limits));
        }
        Step::Rates(one, changes) => drop(torrents.change_rates(hash(one), changes)),
        Step::AllRates(changes) => torrents.change_all_rates(changes),
        Step::Bounds(downloads, seeds, checks) => torrents.set_bounds(Bounds {
            downloads,
            seeds,
            checks,
            ratio: None,
            time: Some(1000),
            rates: torrents.all_rates(),
        }),
        Step::Resolved(one) if task(one).is_some_and(|task| !task.verifies) => {
            torrents.on_resolved(hash(one), "resolved".into(), 1000);
        }
        Step::Checked(one, complete) if task(one).is_some_and(|task| !task.checked) => {
            let resolved = torrents.record(hash(one)).expect("a record").origin == Origin::Metainfo;
            if resolved {
                host.tasks.get_mut(&hash(one)).expect("a task").checked = true;
                torrents.on_checked(hash(one), complete, now);
            }
        }
        Step::Completed(one) if task(one).is_some_and(|task| task.checked && !task.verifies) => {
            torrents.on_completed(hash(one), now);
        }
        Step::Traffic(one, up, down) => {
            torrents.on_traffic(hash(one), traffic(up.into(), down.into()), now)
        }
        Step::Ended(one, fails) => {
            if host.tasks.remove(&hash(one)).is_some() {
                let ended = if fails {
                    Err("it failed".to_owned())
                } else {
                    Ok(())
                };
                torrents.on_ended(hash(one), ended, now);
            }
        }
        Step::Moved(works) => {
            if let Some(one) = host.moves.pop() {
                torrents.on_moved(
                    one,
                    if works {
                        Ok(())
                    } else {
                        Err("not moved".into())
                    },
                );
            }
        }
        Step::Removed(works) => {
            if let Some(one) = host.removals.pop() {
                if works {
                    host.disk.remove(&one);
                    added.retain(|hash| *hash != one);
                }
                torrents.on_removed(
                    one,
                    if works {
                        Ok(())
                    } else {
                        Err("not removed".into())
                    },
                    now,
                );
            }
        }
        Step::Wait(seconds) => {
            let due = torrents.next_due();
            host.now += u64::from(seconds);
            // What was due in between is done when it is due.
            if let Some(due) = due.filter(|due| *due <= Duration::from_secs(host.now)) {
                let now = host.now;
                host.now = due.as_secs().max(now.saturating_sub(u64::from(seconds)));
                host.obey(torrents);
                host.now = now;
            }
        }
        Step::Crash => {
            // Nothing is left but what is on disk.
            let records: Vec<Record> = host.disk.values().cloned().collect();
            host.tasks.clear();
            host.moves.clear();
            host.removals.clear();
            host.rates_in_force = None;
            let rates = host.rates_on_disk.unwrap_or_default();
            let bounds = Bounds {
                rates,
                ..torrents.bounds()
            };
            *torrents = Torrents::new(bounds, records);
        }
        Step::Resolved(_) | Step::Checked(..) | Step::Completed(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Nothing is forgotten, also in a crash; no bound is exceeded; no place is left free.
    #[test]
    fn torrents_are_kept_and_bounds_hold(steps in proptest::collection::vec(step(), 1..120)) {
        let rates = RateLimits::default();
        let bounds = Bounds { downloads: 2, seeds: 2, checks: 1, ratio: None, time: Some(1000), rates };
        let mut torrents = Torrents::new(bounds, []);
        let (mut host, mut added) = (Host::default(), Vec::new());
        for step in &steps {
            run(step, &mut torrents, &mut host, &mut added);
            host.obey(&mut torrents);
            host.check(&torrents, &added);
            prop_assert!(torrents.next_due().is_none_or(|due| due > host.now().elapsed));
        }
    }

    /// A move in the queue changes the order of no other two torrents.
    #[test]
    fn moves_keep_the_order_of_the_others(moves in proptest::collection::vec((0..8_u8, 0..12_usize), 1..20)) {
        let stopped = (0..8).map(|number| Record { started: false, rank: number.into(), ..record(number) });
        let mut torrents = Torrents::new(Bounds::default(), stopped);
        for (one, to) in moves {
            let mut expected: Vec<InfoHash> = torrents.hashes().filter(|it| *it != hash(one)).collect();
            expected.insert(to.min(7), hash(one));
            torrents.reorder(hash(one), Move::To(to)).unwrap();
            prop_assert_eq!(torrents.hashes().collect::<Vec<_>>(), expected);
        }
    }
}

/// Torrents that all run, with their host.
fn running(bounds: Bounds, count: u8) -> (Torrents, Host) {
    let mut torrents = Torrents::new(bounds, []);
    let mut host = Host::default();
    for number in 0..count {
        torrents.add(record(number)).unwrap();
    }
    host.obey(&mut torrents);
    (torrents, host)
}

#[test]
fn the_first_of_the_queue_download_and_the_next_follows() {
    let bounds = Bounds {
        downloads: 2,
        ..Bounds::default()
    };
    let (mut torrents, mut host) = running(bounds, 3);
    let status = |torrents: &Torrents| [0, 1, 2].map(|one| torrents.status(hash(one)).unwrap());
    assert_eq!(
        status(&torrents),
        [Status::Checking, Status::Checking, Status::Queued]
    );
    torrents.on_checked(hash(0), false, host.now());
    torrents.on_checked(hash(1), false, host.now());
    torrents.on_completed(hash(0), host.now());
    host.obey(&mut torrents);
    assert_eq!(
        status(&torrents),
        [Status::Seeding, Status::Downloading, Status::Checking]
    );
}

#[test]
fn seeding_ends_at_its_limits_and_goes_on_when_started() {
    let bounds = Bounds {
        ratio: Some(1.5),
        time: Some(60),
        ..Bounds::default()
    };
    let (mut torrents, mut host) = running(bounds, 2);
    for one in [0, 1] {
        torrents.on_checked(hash(one), true, host.now());
    }
    torrents.on_traffic(hash(0), traffic(1499, 0), host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Seeding));
    torrents.on_traffic(hash(0), traffic(1500, 0), host.now());
    host.obey(&mut torrents);
    assert!(host.log.contains(&Order::Halt(hash(0))));
    torrents.on_ended(hash(0), Ok(()), host.now());
    assert_eq!(torrents.status(hash(0)), Some(Status::Finished));
    let ended = Outcome::Finished(SeedLimit::Ratio);
    assert_eq!(torrents.record(hash(0)).unwrap().outcome, Some(ended));

    assert_eq!(torrents.next_due(), Some(Duration::from_secs(60)));
    host.now = 60;
    host.obey(&mut torrents);
    torrents.on_ended(hash(1), Ok(()), host.now());
    let ended = Outcome::Finished(SeedLimit::Time);
    assert_eq!(torrents.record(hash(1)).unwrap().outcome, Some(ended));
    assert_eq!(torrents.record(hash(1)).unwrap().totals.seeded, 60);

    torrents.start(hash(1)).unwrap();
    host.tasks.clear();
    host.obey(&mut torrents);
    torrents.on_checked(hash(1), true, host.now());
    host.now = 10_000;
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(1)), Some(Status::Seeding));
}

#[test]
fn a_failure_stays_that_of_one_torrent_until_it_is_started() {
    let (mut torrents, mut host) = running(Bounds::default(), 2);
    host.tasks.remove(&hash(0));
    torrents.on_ended(hash(0), Err("the disk is full".into()), host.now());
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Failed));
    assert_eq!(torrents.status(hash(1)), Some(Status::Checking));
    let failed = Outcome::Failed("the disk is full".into());
    assert_eq!(host.disk[&hash(0)].outcome, Some(failed));
    torrents.start(hash(0)).unwrap();
    host.obey(&mut torrents);
    assert_eq!(torrents.status(hash(0)), Some(Status::Checking));
}

#[test]
fn wrong_values_and_unknown_torrents_are_refused() {
    let (mut torrents, _) = running(Bounds::default(), 1);
    assert_eq!(torrents.start(hash(9)), Err(CommandError::Unknown(hash(9))));
    assert_eq!(
        torrents.add(record(0)),
        Err(CommandError::Duplicate(hash(0)))
    );
    for label in ["", "a,b", "a\nb", &"x".repeat(101)] {
        let set = torrents.set_labels(hash(0), vec![label.to_owned()]);
        assert!(matches!(set, Err(CommandError::Value(_))), "{label:?}");
    }
    for ratio in [-1.0, f64::NAN, f64::INFINITY] {
        let limits = SeedChoice {
            ratio: Choice::Own(ratio),
            ..SeedChoice::default()
        };
        assert!(torrents.set_limits(hash(0), limits).is_err(), "{ratio}");
    }
    let relative = torrents.relocate(hash(0), "downloads".into(), true);
    assert!(matches!(relative, Err(CommandError::Value(_))));
    torrents.remove(hash(0), false).unwrap();
    assert_eq!(torrents.stop(hash(0)), Err(CommandError::Busy(hash(0))));
}
