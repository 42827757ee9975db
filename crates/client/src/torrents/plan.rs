//! What is to be done now: which torrents end, which take the places that are free.

use std::time::Duration;

use hawser_torrent::InfoHash;

use super::entry::{Activity, Entry};
use super::{Now, Order, SAVE_INTERVAL, Torrents};
use crate::record::{Announcement, Origin, Outcome, Pending};
use crate::settings::Limit;

/// Places that are taken.
#[derive(Debug, Default)]
struct Taken {
    downloads: usize,
    seeds: usize,
    checks: usize,
}

impl Torrents {
    /// What is to be done at this time. Where nothing has changed since the last time but what was transferred,
    /// it costs little also for many torrents.
    pub fn advance(&mut self, now: Now) -> Vec<Order> {
        self.follow_schedule(now);
        self.end_seeding(now);
        if !self.entries.is_changed() {
            let mut saves = self.save_limits(now);
            saves.append(&mut self.late_saves(now));
            return saves;
        }
        let mut orders = Vec::new();
        // Groups are there before the torrents in them run.
        if std::mem::take(&mut self.has_new_rates) {
            orders.push(Order::LimitAll);
        }
        let queue: Vec<InfoHash> = self.queue.values().copied().collect();
        self.deliver(&queue);
        self.halt(&queue, &mut orders);
        self.begin(&queue, now, &mut orders);
        self.apply(&queue, &mut orders);
        self.announce(&queue, &mut orders);
        // Records come first: what is begun is on disk before.
        let mut saves = self.save_limits(now);
        saves.append(&mut self.saves(&queue, now));
        saves.append(&mut orders);
        self.entries.set_planned();
        saves
    }

    /// When there is something to do though nothing happens.
    pub fn next_due(&self) -> Option<Duration> {
        let times = self.entries.values().flat_map(|entry| {
            let seeding = entry.seeding_due(&self.bounds.all.queue);
            let saving = entry.unsaved_since.map(|since| since + SAVE_INTERVAL);
            [seeding.filter(|_| entry.runs()), saving]
        });
        let rates = self.limits_unsaved_since.map(|since| since + SAVE_INTERVAL);
        times.flatten().chain(rates).min()
    }

    /// Marks those whose seeding has reached a limit.
    fn end_seeding(&mut self, now: Now) {
        let queue = self.bounds.all.queue;
        let mut any = false;
        for entry in self.entries.all_numbers_mut() {
            if entry.count_time(now.elapsed) {
                entry.unsaved_since.get_or_insert(now.elapsed);
            }
            if entry.activity == Activity::Seeding
                && entry.record.outcome.is_none()
                // One that is about to end may have more to download.
                && !entry.to_verify
                && let Some(limit) = entry.reached(&queue, now.elapsed)
            {
                entry.record.outcome = Some(Outcome::Finished(limit));
                entry.skips_queue = false;
                entry.must_save = true;
                any = true;
            }
        }
        if any {
            self.entries.set_changed();
        }
    }

    /// Has complete content moved that is to be elsewhere then. A move that has failed is tried again when the
    /// torrent is started.
    fn deliver(&mut self, queue: &[InfoHash]) {
        for info_hash in queue {
            let Some(entry) = self.entries.get(info_hash) else {
                continue;
            };
            let record = &entry.record;
            let waits = record.settings.destination.is_some() && record.pending.is_none();
            let has_failed = matches!(record.outcome, Some(Outcome::Failed(_)));
            if waits
                && entry.is_complete()
                && !entry.checks()
                // One that was being verified is moved once it has ended.
                && entry.activity != Activity::Halting
                && !entry.to_verify
                && !has_failed
                && let Some(entry) = self.entries.get_mut(info_hash)
            {
                let to = entry.record.settings.destination.clone();
                entry.record.pending = to.map(Pending::Move);
                entry.must_save = true;
            }
        }
    }

    /// Ends what may not run any more: the last in the queue, where more run than may.
    fn halt(&mut self, queue: &[InfoHash], orders: &mut Vec<Order>) {
        let (mut downloads, mut seeds) = (0, 0);
        for info_hash in queue {
            let Some(entry) = self.entries.get_mut(info_hash) else {
                continue;
            };
            let settled = !entry.must_end();
            let goes_on = match entry.activity {
                Activity::Verifying => settled && entry.to_verify,
                // Verified anew by running again.
                _ => entry.wants_to_run() && !entry.to_verify,
            };
            if !entry.runs() && entry.activity != Activity::Verifying {
                continue;
            }
            let (count, bound) = match entry.is_complete() {
                true => (&mut seeds, self.bounds.all.queue.seeds),
                false => (&mut downloads, self.bounds.all.queue.downloads),
            };
            let has_place = !entry.takes_place() || has_room(*count, bound);
            if goes_on && has_place {
                *count += usize::from(entry.takes_place());
                continue;
            }
            if entry.runs() {
                entry.to_verify = false;
            }
            entry.activity = Activity::Halting;
            orders.push(Order::Halt(*info_hash));
        }
    }

    /// Begins what may begin, in the order of the queue.
    fn begin(&mut self, queue: &[InfoHash], now: Now, orders: &mut Vec<Order>) {
        let mut taken = Taken::default();
        for entry in self.entries.values() {
            taken.checks += usize::from(entry.checks());
            match (entry.takes_place(), entry.is_complete()) {
                (false, _) => {}
                (true, true) => taken.seeds += 1,
                (true, false) => taken.downloads += 1,
            }
        }
        let (checks, limits) = (self.bounds.checks.max(1), self.bounds.all.queue);
        for info_hash in queue {
            let Some(entry) = self.entries.get_mut(info_hash) else {
                continue;
            };
            if entry.activity != Activity::Idle {
                continue;
            }
            if let Some(Pending::Find(folder)) = &entry.record.pending {
                let folder = folder.clone();
                entry.record.pending = None;
                entry.find_in(folder);
                entry.must_save = true;
            }
            match entry.record.pending {
                Some(Pending::Move(_)) => {
                    entry.activity = Activity::Moving;
                    orders.push(Order::Move(*info_hash));
                    continue;
                }
                Some(Pending::Remove { .. }) => {
                    entry.activity = Activity::Removing;
                    orders.push(Order::Remove(*info_hash));
                    continue;
                }
                Some(Pending::Rename(_)) => {
                    entry.activity = Activity::Moving;
                    orders.push(Order::Rename(*info_hash));
                    continue;
                }
                Some(Pending::Find(_)) | None => {}
            }
            let may_check = taken.checks < checks;
            if entry.to_verify {
                if may_check {
                    taken.checks += 1;
                    entry.begin(Activity::Verifying, now);
                    orders.push(Order::Verify(*info_hash));
                }
                continue;
            }
            let (count, bound) = match entry.is_complete() {
                true => (&mut taken.seeds, limits.seeds),
                false => (&mut taken.downloads, limits.downloads),
            };
            let has_place = entry.skips_queue || has_room(*count, bound);
            if !entry.wants_to_run() || !has_place {
                continue;
            }
            match entry.record.origin {
                Origin::Magnet(_) => entry.begin(Activity::Resolving, now),
                Origin::Metainfo if !may_check => continue,
                Origin::Metainfo => {
                    taken.checks += 1;
                    entry.begin(Activity::Checking, now);
                }
            }
            *count += usize::from(entry.takes_place());
            orders.push(Order::Run(*info_hash));
        }
    }

    /// Has tasks obey changed settings. What does not run obeys them when it begins.
    fn apply(&mut self, queue: &[InfoHash], orders: &mut Vec<Order>) {
        for info_hash in queue {
            let Some(entry) = self.entries.get_mut(info_hash) else {
                continue;
            };
            if std::mem::take(&mut entry.task.must_apply) && entry.runs() {
                orders.push(Order::Apply(*info_hash));
            }
            if std::mem::take(&mut entry.task.must_reannounce) && entry.runs() {
                orders.push(Order::Reannounce(*info_hash));
            }
            if matches!(entry.record.pending, Some(Pending::Rename(_)))
                && entry.runs()
                && !std::mem::replace(&mut entry.task.renames, true)
            {
                orders.push(Order::Rename(*info_hash));
            }
        }
    }

    /// Orders those to be announced that have become complete.
    fn announce(&mut self, queue: &[InfoHash], orders: &mut Vec<Order>) {
        for info_hash in queue {
            if let Some(entry) = self.entries.get_mut(info_hash)
                && entry.record.announcement == Announcement::Due
                && entry.record.settings.destination.is_none()
                && !std::mem::replace(&mut entry.is_announced, true)
            {
                orders.push(Order::Announce(*info_hash));
            }
        }
    }

    /// Orders the limits of all torrents to be written, if they are new or have waited for long enough.
    fn save_limits(&mut self, now: Now) -> Vec<Order> {
        let is_due = |since: Duration| now.elapsed >= since + SAVE_INTERVAL;
        let late = self.limits_unsaved_since.is_some_and(is_due);
        match self.must_save_limits || late {
            true => {
                self.must_save_limits = false;
                self.limits_unsaved_since = None;
                vec![Order::SaveLimits]
            }
            false => Vec::new(),
        }
    }

    /// The records that are to be written: those that were changed, and those whose numbers have waited
    /// for long enough.
    fn saves(&mut self, queue: &[InfoHash], now: Now) -> Vec<Order> {
        let mut saves = Vec::new();
        for info_hash in queue {
            let Some(entry) = self.entries.get_mut(info_hash) else {
                continue;
            };
            if entry.must_save || is_late(entry, now) {
                saved(entry, now);
                saves.push(Order::Save(*info_hash));
            }
        }
        saves
    }

    /// The records whose numbers alone are to be written, as they have waited for long enough.
    fn late_saves(&mut self, now: Now) -> Vec<Order> {
        let mut late = Vec::new();
        for entry in self.entries.all_numbers_mut() {
            if is_late(entry, now) {
                saved(entry, now);
                late.push((entry.record.rank, entry.record.info_hash));
            }
        }
        late.sort_unstable();
        late.into_iter()
            .map(|(_, info_hash)| Order::Save(info_hash))
            .collect()
    }

    /// A record that was ordered to be saved could not be: it is tried again after a time.
    pub fn on_unsaved(&mut self, info_hash: InfoHash, now: Now) {
        if let Some(entry) = self.entries.get_mut(&info_hash) {
            entry.unsaved_since = Some(now.elapsed);
        }
    }

    /// The limits of all torrents could not be saved: that is tried again after a time.
    pub fn on_limits_unsaved(&mut self, now: Now) {
        self.limits_unsaved_since = Some(now.elapsed);
    }

    /// Orders all records to be written that are not as on disk, for the end of the program.
    pub fn flush(&mut self, now: Now) -> Vec<Order> {
        let mut saves = Vec::new();
        if self.must_save_limits || self.limits_unsaved_since.is_some() {
            saves.push(Order::SaveLimits);
        }
        for entry in self.entries.all_numbers_mut() {
            entry.count_time(now.elapsed);
            if entry.must_save || entry.unsaved_since.is_some() {
                saved(entry, now);
                saves.push(Order::Save(entry.record.info_hash));
            }
        }
        saves
    }
}

/// Whether another one may run beside that many.
fn has_room(count: usize, bound: Limit<usize>) -> bool {
    bound.in_force().is_none_or(|bound| count < bound.max(1))
}

/// Whether the numbers of a record have waited for long enough to be written.
fn is_late(entry: &Entry, now: Now) -> bool {
    let is_due = |since: Duration| now.elapsed >= since + SAVE_INTERVAL;
    entry.unsaved_since.is_some_and(is_due)
}

fn saved(entry: &mut Entry, now: Now) {
    entry.changed = now.elapsed;
    entry.must_save = false;
    entry.unsaved_since = None;
}
