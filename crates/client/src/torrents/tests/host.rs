//! A caller of the torrents, which carries out what is ordered and checks that it can be.

use std::collections::BTreeMap;

use super::*;
use crate::groups::Groups;
use crate::settings::{AllLimits, Limit, RateLimits, Settings};

/// What a caller has: tasks, and records on disk.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) now: u64,
    pub(super) disk: BTreeMap<InfoHash, Record>,
    /// The tasks, each with whether it only verifies and whether it was ordered to end.
    pub(super) tasks: BTreeMap<InfoHash, Task>,
    /// The settings that each task obeys.
    pub(super) obeyed: BTreeMap<InfoHash, Settings>,
    /// The limits of all torrents on disk, and those of rates in force.
    pub(super) limits_on_disk: Option<AllLimits>,
    pub(super) rates_in_force: Option<RateLimits>,
    pub(super) groups: Groups,
    pub(super) moves: Vec<InfoHash>,
    pub(super) renames: Vec<InfoHash>,
    pub(super) removals: Vec<InfoHash>,
    /// Torrents for which a program is to be run.
    pub(super) announcing: Vec<InfoHash>,
    /// Every order carried out.
    pub(super) log: Vec<Order>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Task {
    pub(super) verifies: bool,
    pub(super) halts: bool,
    pub(super) checked: bool,
}

impl Host {
    pub(super) fn now(&self) -> Now {
        Now {
            elapsed: Duration::from_secs(self.now),
            unix: 1_700_000_000 + self.now,
            week_minute: (self.now / 60 % (7 * 24 * 60)) as u16,
        }
    }

    /// Carries out what is ordered, and checks that each order can be.
    pub(super) fn obey(&mut self, torrents: &mut Torrents) {
        let orders = torrents.advance(self.now());
        // The quick look at unchanged torrents misses nothing of a whole plan.
        torrents.entries.set_changed();
        assert_eq!(torrents.advance(self.now()), []);
        for order in orders {
            self.log.push(order);
            match order {
                Order::Save(hash) => {
                    let record = torrents.record(hash).expect("a record to save");
                    self.disk.insert(hash, record.clone());
                }
                Order::SaveLimits => self.limits_on_disk = Some(torrents.all_limits().clone()),
                Order::LimitAll => {
                    self.rates_in_force = Some(torrents.rates_in_force());
                    self.groups = torrents.all_limits().groups.clone();
                }
                Order::Apply(hash) => {
                    let task = self.tasks.get(&hash).expect("a task to obey");
                    assert!(!task.halts && !task.verifies);
                    let settings = torrents.record(hash).expect("a record").settings.clone();
                    assert_ne!(self.obeyed.insert(hash, settings.clone()), Some(settings));
                }
                Order::Rename(hash) => {
                    let kept = self.disk.get(&hash).expect("it is on disk");
                    assert!(matches!(kept.pending, Some(Pending::Rename(_))));
                    self.renames.push(hash);
                }
                Order::Reannounce(hash) => {
                    let task = self.tasks.get(&hash).expect("a task to announce");
                    assert!(!task.halts && !task.verifies);
                }
                Order::Run(hash) | Order::Verify(hash) => {
                    let settings = torrents.record(hash).expect("a record").settings.clone();
                    let group = &settings.group;
                    assert!(
                        group.is_empty() || self.groups.contains_key(group),
                        "{group}"
                    );
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
                Order::Announce(hash) => {
                    assert!(!self.announcing.contains(&hash), "it is announced twice");
                    let announcement = self.disk[&hash].announcement;
                    assert_eq!(announcement, Announcement::Due, "not saved before");
                    self.announcing.push(hash);
                }
            }
        }
    }

    /// What must hold whenever all orders are carried out.
    pub(super) fn check(&self, torrents: &Torrents, added: &[InfoHash]) {
        let there: Vec<InfoHash> = torrents.hashes().collect();
        assert_eq!(
            there.len(),
            torrents.entries.len(),
            "the queue has each once"
        );
        for hash in added {
            assert!(there.contains(hash), "{hash} is forgotten");
            let record = torrents.record(*hash).expect("a record");
            let is_there = record.settings.destination.is_none();
            let is_due = is_there && record.announcement == Announcement::Due;
            assert_eq!(is_due, self.announcing.contains(hash), "{record:?}");
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
            kept.dates.active = entry.record.dates.active;
            kept.dates.started = entry.record.dates.started;
            assert_eq!(kept, *entry.record);
        }
        assert_eq!(self.limits_on_disk.as_ref(), Some(torrents.all_limits()));
        assert_eq!(self.groups, torrents.all_limits().groups);
        assert_eq!(self.rates_in_force, Some(torrents.rates_in_force()));
        for (hash, task) in &self.tasks {
            let wanted = &torrents.entries[hash].record.settings;
            let obeyed = &self.obeyed[hash];
            let of = |it: &Settings| {
                let group = it.group.clone();
                (it.rates, it.files.clone(), group, it.is_exempt)
            };
            let group = &obeyed.group;
            assert!(
                group.is_empty() || self.groups.contains_key(group),
                "{group}"
            );
            let obeys = of(obeyed) == of(wanted);
            assert!(obeys || task.halts || task.verifies, "{hash}: {wanted:?}");
        }
        let bounds = torrents.bounds();
        let entries = || torrents.entries.values();
        let running = |complete| {
            entries()
                .filter(|e| e.runs() && e.is_complete() == complete)
                .count()
        };
        let queue = bounds.all.queue;
        let most = |limit: Limit<usize>| limit.in_force().unwrap_or(usize::MAX);
        let (downloads, seeds) = (most(queue.downloads), most(queue.seeds));
        assert!(running(false) <= downloads && running(true) <= seeds);
        // Where nothing is about to end, no place is left free.
        let settles = entries().any(|entry| entry.activity == Activity::Halting);
        let checks = entries().filter(|entry| entry.checks()).count();
        for entry in entries().filter(|entry| entry.activity == Activity::Idle && !settles) {
            let bound = match entry.is_complete() {
                true => seeds,
                false => downloads,
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
            entries().filter(|entry| entry.takes_place() || entry.activity == Activity::Verifying);
        assert_eq!(with_task.count(), self.tasks.len());
    }
}
