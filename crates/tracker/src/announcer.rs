//! When which tracker of a torrent is asked, and what it is sent.
//!
//! Events in, orders out. The caller announces as ordered, bounds the time that this takes, and reports
//! each outcome once.
//!
//! # The life of an announcer
//!
//! 1. Trackers stand in tiers, each shuffled (BEP 12). They are asked from the first of the first tier on,
//!    until one answers; that one moves to the front of its tier. With [`AnnounceOptions::all_tiers`] this
//!    holds for each tier apart, so that one tracker of each is asked.
//! 2. A tracker that answers is asked again at its interval, within bounds; earlier, at its least
//!    interval, while few peers are known and bytes are missing. One that fails is left alone for a time
//!    that doubles with each failure in a row, and the next is asked at once.
//! 3. The first announce to a tracker says `started`, and one after the download is complete
//!    `completed`.
//! 4. The torrent may get other trackers at any time ([`Announcer::set_trackers`]): new ones are asked, and
//!    those that it has no longer get `stopped`.
//! 5. [`Announcer::stop`] orders `stopped` to all trackers that know of the client; then there are no
//!    more orders.

mod change;
mod group;
mod options;
#[cfg(test)]
mod tests;
mod tracker;

use std::time::Instant;

use fastrand::Rng;

use self::group::Group;
pub use self::options::{AnnounceId, AnnounceOptions, Identity, Stats};
use self::tracker::{Flight, Tracker};
pub use self::tracker::{TrackerState, TrackerStatus};
use crate::message::{AnnounceRequest, Answer, Event, TrackerError};

/// Most trackers of a torrent; further ones are not asked.
pub const MAX_TRACKERS: usize = 256;

/// What the caller is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Announce to a tracker, and report what comes of it.
    Announce {
        /// To be given back with the outcome.
        id: AnnounceId,
        /// The tracker's URL.
        url: String,
        /// What it is sent.
        request: AnnounceRequest,
    },
}

/// The trackers of one torrent.
#[derive(Debug)]
pub struct Announcer {
    identity: Identity,
    options: AnnounceOptions,
    /// Those of the torrent, then those that it has no longer and that get `stopped`, at most
    /// [`MAX_TRACKERS`] each.
    trackers: Vec<Tracker>,
    /// How many of `trackers` are those of the torrent.
    listed: usize,
    groups: Vec<Group>,
    stats: Stats,
    /// Whether the download was completed while the announcer was there.
    completed: bool,
    /// Since when no more is announced but `stopped`.
    stopping: Option<Instant>,
    next_id: u64,
    rng: Rng,
}

impl Announcer {
    /// For a torrent with the trackers `tiers`, by their URLs; the first announce is due at `now`. URLs that
    /// repeat, and those beyond [`MAX_TRACKERS`], are left out. `rng` shuffles tiers and spreads pauses.
    pub fn new(
        identity: Identity,
        tiers: &[Vec<String>],
        options: AnnounceOptions,
        rng: Rng,
        now: Instant,
    ) -> Self {
        let mut announcer = Self {
            identity,
            options,
            trackers: Vec::new(),
            listed: 0,
            groups: Vec::new(),
            stats: Stats::default(),
            completed: false,
            stopping: None,
            next_id: 0,
            rng,
        };
        announcer.set_trackers(tiers, now);
        announcer
    }

    /// Reports the numbers to be announced. They count from the next announce on.
    pub fn on_stats(&mut self, stats: Stats) {
        self.stats = stats;
    }

    /// Reports that the download is complete: the trackers in use that know of the client as a leecher are
    /// told at once. [`on_stats`](Self::on_stats) must have reported that nothing is missing. A client that
    /// begins as a seeder does not call this.
    pub fn completed(&mut self, now: Instant) {
        if std::mem::replace(&mut self.completed, true) {
            return;
        }
        for group in &mut self.groups {
            // Others are told when they are next asked.
            let next = group.choose(&self.trackers, self.completed, now);
            if next.is_some_and(|next| self.trackers[next].is_to_be_told()) {
                group.next = group.next.min(now);
            }
        }
    }

    /// Asks for an announce as soon as the trackers allow it, such as on the wish of a person.
    pub fn refresh(&mut self, now: Instant) {
        for group in &mut self.groups {
            let earliest = group.answered.map_or(now, |at| at + group.min_interval);
            group.next = group.next.min(earliest.max(now));
        }
    }

    /// Ends it: `stopped` is due at once, and nothing after that.
    pub fn stop(&mut self, now: Instant) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(now);
        for tracker in &mut self.trackers {
            let is_to_be_told = tracker.may_know() || tracker.to_stop.is_some();
            // The answer to what is under way is no longer of use.
            tracker.flight = None;
            tracker.to_stop = is_to_be_told.then_some(now);
        }
    }

    /// Whether it was [stopped](Self::stop), and all trackers that had to be told have answered or failed.
    pub fn is_done(&self) -> bool {
        let open = |tracker: &Tracker| tracker.to_stop.is_some() || tracker.flight.is_some();
        self.stopping.is_some() && !self.trackers.iter().any(open)
    }

    /// The announces due now. To be called after each event, and at [`next_due`](Self::next_due).
    pub fn advance(&mut self, now: Instant) -> Vec<Order> {
        let all = 0..self.trackers.len();
        let to_stop = all.filter(|at| self.trackers[*at].take_stop());
        let to_stop: Vec<_> = to_stop.collect();
        let to_stop = to_stop.into_iter();
        let mut orders: Vec<_> = to_stop
            .map(|at| self.announce(at, Event::Stopped, now))
            .collect();
        if self.stopping.is_some() {
            return orders;
        }
        let mut chosen = Vec::new();
        for group in &self.groups {
            if group
                .due(&self.trackers, self.is_hungry(), self.completed)
                .is_some_and(|due| due <= now)
            {
                chosen.extend(group.choose(&self.trackers, self.completed, now));
            }
        }
        let event = |tracker: &Tracker| match tracker.known.map(|known| known.since) {
            None => Event::Started,
            Some(_) if self.completed && tracker.is_to_be_told() => Event::Completed,
            Some(_) => Event::None,
        };
        let chosen: Vec<_> = chosen
            .into_iter()
            .map(|at| (at, event(&self.trackers[at])))
            .collect();
        for (at, event) in chosen {
            orders.push(self.announce(at, event, now));
        }
        orders
    }

    /// Reports what has come of an announce. An outcome that is repeated, or of an announce made before
    /// [`stop`](Self::stop), changes nothing.
    pub fn on_answer(
        &mut self,
        now: Instant,
        id: AnnounceId,
        outcome: Result<&Answer, &TrackerError>,
    ) {
        let is_it = |tracker: &Tracker| tracker.flight.as_ref().is_some_and(|it| it.id == id);
        let Some(at) = self.trackers.iter().position(is_it) else {
            return;
        };
        let tracker = &mut self.trackers[at];
        let Some(flight) = tracker.flight.take() else {
            return;
        };
        match outcome {
            Ok(answer) => tracker.answer(&flight, answer, now),
            Err(error) => tracker.fail(&flight, error, &mut self.rng, now),
        }
        if self.stopping.is_some() {
            return;
        }
        if at >= self.listed {
            if tracker.to_stop.is_none() {
                self.trackers.remove(at);
            }
            return;
        }
        let to_be_told = self.completed && tracker.is_to_be_told();
        let intervals = (tracker.interval, tracker.min_interval);
        let Some(group) = self
            .groups
            .iter_mut()
            .find(|g| g.members().any(|m| m == at))
        else {
            return;
        };
        match outcome {
            // The torrent has it again.
            _ if flight.event == Event::Stopped => group.next = now,
            Ok(_) => {
                group.answered(at, intervals, now);
                if to_be_told {
                    group.next = now;
                }
            }
            Err(_) => group.next = group.next.min(now),
        }
    }

    /// When [`advance`](Self::advance) is to be called though nothing happens; `None` if no announce will
    /// be due before an outcome is reported.
    pub fn next_due(&self) -> Option<Instant> {
        let to_stop = self.trackers.iter().filter_map(Tracker::stop_due).min();
        if self.stopping.is_some() {
            return to_stop;
        }
        let due = |group: &Group| group.due(&self.trackers, self.is_hungry(), self.completed);
        self.groups.iter().filter_map(due).chain(to_stop).min()
    }

    /// All trackers, in the order of the torrent, as they are at `now`.
    pub fn status(&self) -> Vec<TrackerStatus> {
        let due = |at: usize| {
            let group = self
                .groups
                .iter()
                .find(|g| g.members().any(|member| member == at))?;
            let due = group.due(&self.trackers, self.is_hungry(), self.completed)?;
            (group.choose(&self.trackers, self.completed, due) == Some(at)).then_some(due)
        };
        let with_due = |(at, tracker): (usize, &Tracker)| {
            tracker.status(due(at).filter(|_| self.stopping.is_none()))
        };
        let listed = self.trackers.iter().take(self.listed).enumerate();
        listed.map(with_due).collect()
    }

    /// Whether more peers are wanted than the trackers have given.
    fn is_hungry(&self) -> bool {
        self.stats.left > 0 && self.stats.peers < self.options.few_peers
    }

    fn announce(&mut self, at: usize, event: Event, now: Instant) -> Order {
        let id = AnnounceId(self.next_id);
        self.next_id += 1;
        let tracker = &mut self.trackers[at];
        let identity = &self.identity;
        let port = tracker.port(identity.port);
        let flight = Flight {
            id,
            event,
            left: self.stats.left,
            port,
        };
        tracker.ask(flight, now);
        let request = AnnounceRequest {
            info_hash: identity.info_hash,
            peer_id: identity.peer_id,
            port,
            uploaded: self.stats.uploaded,
            downloaded: self.stats.downloaded,
            left: self.stats.left,
            event,
            num_want: Some(match event {
                Event::Stopped => 0,
                _ => self.options.num_want,
            }),
            key: identity.key,
            scion: identity.scion,
            tracker_id: tracker.tracker_id.clone(),
        };
        Order::Announce {
            id,
            url: tracker.url.clone(),
            request,
        }
    }
}
