//! Random commands and events on virtual time, with invariants after each.

use proptest::prelude::*;

use super::*;
use crate::alternative::{AlternativeChanges, ScheduleChanges};
use crate::groups::{GroupChanges, OuterChange};
use crate::settings::{LimitChange, QueueChanges, RateChange, RateChanges};

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
    Alternative(AlternativeChanges),
    Group(u8, GroupChanges),
    Outer(u8, Option<u8>, Option<bool>),
    Files(u8, FileChanges),
    Unselected(u8),
    Bounds(usize, usize, usize),
    Queue(QueueChanges),
    Resolved(u8),
    Checked(u8, bool),
    Completed(u8),
    Traffic(u8, u16, u16),
    Ended(u8, bool),
    Moved(bool),
    Removed(bool),
    Announced,
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

/// Limits of a queue in which seeding ends at some time.
fn queue(downloads: usize, seeds: usize) -> QueueLimits {
    QueueLimits {
        downloads: Limit::to(downloads),
        seeds: Limit::to(seeds),
        time: Limit::to(1000),
        ..QueueLimits::default()
    }
}

fn queue_changes() -> impl Strategy<Value = QueueChanges> {
    let count = || {
        let values = (proptest::option::of(0..4_usize), any::<Option<bool>>());
        values.prop_map(|(value, holds)| LimitChange { value, holds })
    };
    let idle = (proptest::option::of(0..500_u64), any::<Option<bool>>())
        .prop_map(|(value, holds)| LimitChange { value, holds });
    (count(), count(), idle).prop_map(|(downloads, seeds, idle)| QueueChanges {
        downloads,
        seeds,
        idle,
        ..QueueChanges::default()
    })
}

fn alternative_changes() -> impl Strategy<Value = AlternativeChanges> {
    let (rate, switch) = (proptest::option::of(0..3_u64), any::<Option<bool>>());
    // In the first minutes of a week, in which most runs end.
    let minute = || proptest::option::of(prop_oneof![0..9_u16, Just(1440)]);
    let schedule = (
        any::<Option<bool>>(),
        minute(),
        minute(),
        any::<Option<u8>>(),
    );
    (rate, switch, schedule).prop_map(|(download, holds, (is_on, begin, end, days))| {
        AlternativeChanges {
            download,
            upload: None,
            holds,
            schedule: ScheduleChanges {
                is_on,
                begin,
                end,
                days,
            },
        }
    })
}

fn file_changes() -> impl Strategy<Value = FileChanges> {
    let change = (0..3_u32, any::<Option<bool>>()).prop_map(|(file, is_wanted)| FileChange {
        files: match file {
            0 => Files::All,
            file => Files::These(vec![file]),
        },
        is_wanted,
        priority: None,
    });
    let each = proptest::collection::vec(change, 0..3);
    (each, any::<Option<bool>>()).prop_map(|(each, is_sequential)| FileChanges {
        each,
        is_sequential,
    })
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
        1 => alternative_changes().prop_map(Step::Alternative),
        1 => (0..4_u8, rate_changes(), any::<Option<bool>>())
            .prop_map(|(name, rates, is_exempt)| Step::Group(name, GroupChanges { rates, is_exempt })),
        2 => (one.clone(), proptest::option::of(0..4_u8), any::<Option<bool>>())
            .prop_map(|(one, group, is_exempt)| Step::Outer(one, group, is_exempt)),
        2 => (one.clone(), file_changes()).prop_map(|(one, changes)| Step::Files(one, changes)),
        1 => one.clone().prop_map(Step::Unselected),
        1 => (1..4_usize, 1..4_usize, 1..3_usize).prop_map(|(a, b, c)| Step::Bounds(a, b, c)),
        2 => queue_changes().prop_map(Step::Queue),
        2 => one.clone().prop_map(Step::Resolved),
        4 => (one.clone(), any::<bool>()).prop_map(|(one, complete)| Step::Checked(one, complete)),
        3 => one.clone().prop_map(Step::Completed),
        3 => (one.clone(), any::<u16>(), any::<u16>()).prop_map(|(one, up, down)| Step::Traffic(one, up, down)),
        4 => (one, any::<bool>()).prop_map(|(one, fails)| Step::Ended(one, fails)),
        2 => any::<bool>().prop_map(Step::Moved),
        2 => any::<bool>().prop_map(Step::Removed),
        2 => Just(Step::Announced),
        3 => any::<u8>().prop_map(Step::Wait),
        1 => Just(Step::Crash),
    ]
}

/// The name of a group; that of 0 is none.
fn group(number: u8) -> String {
    "x".repeat(number.into())
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
            if number % 2 == 1 {
                new.begin_in(Some("/incomplete".as_ref()));
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
                ..SeedChoice::default()
            };
            drop(torrents.set_limits(hash(one), limits));
        }
        Step::Rates(one, changes) => drop(torrents.change_rates(hash(one), changes)),
        Step::Files(one, ref changes) => drop(torrents.change_files(hash(one), changes)),
        Step::Unselected(one) => torrents.on_unselected(hash(one)),
        Step::AllRates(changes) => torrents.change_all_rates(changes),
        Step::Alternative(changes) => {
            let before = torrents.all_limits().clone();
            if torrents.change_alternative(changes).is_err() {
                assert_eq!(*torrents.all_limits(), before);
            }
        }
        Step::Group(name, changes) => drop(torrents.change_group(&group(name), changes)),
        Step::Outer(one, name, is_exempt) => {
            let group = name.map(group);
            let change = OuterChange {
                group,
                is_exempt,
                ..OuterChange::default()
            };
            drop(torrents.change_outer(hash(one), change));
        }
        Step::Bounds(downloads, seeds, checks) => torrents.set_bounds(Bounds {
            checks,
            all: AllLimits {
                queue: queue(downloads, seeds),
                ..torrents.all_limits().clone()
            },
        }),
        Step::Queue(changes) => {
            let before = torrents.all_limits().clone();
            if torrents.change_queue(changes).is_err() {
                assert_eq!(*torrents.all_limits(), before);
            }
        }
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
                    host.announcing.retain(|hash| *hash != one);
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
        Step::Announced => {
            if let Some(one) = host.announcing.pop() {
                torrents.on_announced(one);
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
            host.announcing.clear();
            host.rates_in_force = None;
            let bounds = Bounds {
                all: host.limits_on_disk.clone().unwrap_or_default(),
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
        let bounds = Bounds { checks: 1, ..bounds(queue(2, 2)) };
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
