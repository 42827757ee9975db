//! How many blocks are requested over which connection: what is decided once for a torrent, not for
//! each of its connections.
//!
//! Pure: the caller passes the time. The blocks requested together cover the rate of all
//! connections together up to twice, however many there are; near the end the remaining blocks are shared out,
//! and only few are requested twice.
//!
//! The owner of the torrent drives it. At each tick, every 50 ms, it calls [`Requests::review`],
//! which decides which connections are requested from, and which part of its depth each gets; where
//! paths have shares, after each batch of events too. Then, and after each batch of events, it tops
//! up: while much is left, one connection at a time by its depth ([`Requests::fill_one`]); near the
//! end ([`Requests::is_ending`]) all of them by a plan ([`Requests::fill_by_plan`]), which takes
//! blocks back from those that would be late and requests some a second time. That is judged anew
//! each time: a piece with the wrong hash, or a lower rate, leads back to depths.
//!
//! A connection is *new* until it is first requested from, then a *member* while it is usable and
//! helps; one that had to make room for others comes back after those that never were members. What
//! is kept of a connection goes when it is no longer usable, what it answered when it has ended.
//! Once everything is verified, nothing is decided here any more.

mod active;
mod duplicates;
mod pace;
mod progress;
mod silence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_manager::Room;
use hawser_path::Fingerprint;

use self::active::Active;
use self::duplicates::Duplicates;
pub(crate) use self::pace::Pace;
use self::progress::Progress;
pub(crate) use self::silence::Silence;
use crate::picker::{ConnId, Picker, Placed};
use crate::pipeline::{INITIAL_DEPTH, MIN_DEPTH, Meter, Plan, Subflow};
use crate::wire::{BLOCK, Request};

/// Blocks are shared out by plan once fewer than this many are left, or less than this many seconds'
/// worth. Before that each connection may request what fills its pipe.
const NEAR_END: (u64, f64) = (256, 4.0);

/// Requests over a connection are topped up once this part of its depth is missing, or this many blocks
/// (256 KiB, what a seeder reads at once): each message wakes the peer, and would otherwise follow each
/// block that arrives.
const TOP_UP_PART: usize = 4;
const TOP_UP: usize = 16;

/// Blocks requested over all connections together before anything has arrived over them: 4 MiB.
const INITIAL_TOTAL: usize = 4 * INITIAL_DEPTH;

/// A connection over which blocks may be requested now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Its path: connections over the same one share its bottlenecks.
    pub path: Fingerprint,
    pub subflow: Subflow,
    /// Blocks to keep requested over it if it were the only one.
    pub depth: usize,
    /// The time that this covers.
    pub time: Duration,
}

impl Source {
    /// Blocks that arrive in the time that requests cover.
    fn covers(&self) -> usize {
        let bytes = self.subflow.rate.unwrap_or(0.0) * self.time.as_secs_f64();
        (bytes / f64::from(BLOCK)).ceil() as usize
    }
}

/// The requests to be sent, those to be cancelled first.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub cancel: Vec<Placed>,
    pub requests: Vec<(ConnId, Vec<Request>)>,
}

impl Filled {
    /// Number of blocks requested.
    pub fn count(&self) -> usize {
        self.requests.iter().map(|(_, blocks)| blocks.len()).sum()
    }
}

/// What is requested for a torrent.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Blocks that arrived over all connections.
    meter: Meter,
    active: Active,
    /// The part of its depth that each connection gets, so that all together cover the rate of all
    /// together.
    scale: f64,
    duplicates: Duplicates,
    progress: Progress,
    /// The time of the last review.
    reviewed: Instant,
}

impl Requests {
    /// For a torrent of which `blocks` blocks are missing.
    pub fn new(blocks: u64, now: Instant) -> Self {
        Self {
            meter: Meter::new(now),
            active: Active::new(),
            scale: 1.0,
            duplicates: Duplicates::new(blocks, now),
            progress: Progress::default(),
            reviewed: now,
        }
    }

    /// Counts `bytes` of a block that arrived.
    pub fn arrived(&mut self, bytes: u64, now: Instant) {
        self.meter.add(now, bytes);
    }

    /// Whether so little is left that it is shared out by plan.
    pub fn is_ending(&self, picker: &Picker, now: Instant) -> bool {
        let left = picker.free_blocks() + picker.asked_blocks();
        let (blocks, seconds) = NEAR_END;
        let enough = (self.meter.rate(now) * seconds / f64::from(BLOCK)) as u64;
        left <= enough.max(blocks)
    }

    /// Decides anew which of the usable connections are requested from, and how their depths are
    /// scaled. To be called about every 50 ms. With `all`, each connection is requested from.
    pub fn review(&mut self, sources: &BTreeMap<ConnId, Source>, all: bool, now: Instant) {
        self.reviewed = now;
        self.duplicates.refill(now);
        self.active.review(sources, all, self.meter.rate(now), now);
        let measured = sources
            .iter()
            .filter(|(id, source)| source.subflow.rate.is_some() && self.active.contains(**id));
        let (mut sum, mut longest) = (0, Duration::ZERO);
        for (_, source) in measured {
            sum += source.depth;
            longest = longest.max(source.time);
        }
        let covered = self.meter.peak(now) * longest.as_secs_f64() / f64::from(BLOCK);
        let together = (covered.ceil() as usize).max(INITIAL_DEPTH);
        self.scale = (together as f64 / sum.max(1) as f64).min(1.0);
    }

    /// Blocks to keep requested over a connection; 0 if it is not requested from.
    fn depth(&mut self, id: ConnId, source: &Source) -> usize {
        if !self.active.admit(id, source.path) {
            return 0;
        }
        match source.subflow.rate {
            None => {
                let part = INITIAL_TOTAL / self.active.len().max(1);
                source.depth.min(part.max(MIN_DEPTH))
            }
            Some(_) => {
                let scaled = (source.depth as f64 * self.scale).ceil() as usize;
                source.depth.min(scaled.max(MIN_DEPTH))
            }
        }
    }

    /// Tops up the requests over one connection; `room` bounds them.
    pub fn fill_one(
        &mut self,
        picker: &mut Picker,
        id: ConnId,
        source: &Source,
        room: Room,
    ) -> Filled {
        let depth = match self.depth(id, source) {
            0 => 0,
            // Others that deliver in bursts have depths far beyond their rates. Without what covers its own rate,
            // a connection would get less and less beside them.
            depth => depth.max(source.covers().min(source.depth)),
        };
        let more = depth.saturating_sub(source.subflow.asked);
        if more < (depth / TOP_UP_PART).min(TOP_UP) {
            return Filled::default();
        }
        let picked = picker.pick(id, more.min(blocks(room.new)));
        Filled {
            cancel: picked.cancel,
            requests: vec![(id, picked.requests)],
        }
    }

    /// Near the end: each connection gets what it can deliver by the time all are done. One without
    /// free blocks to request duplicates requests of others that it can answer sooner.
    pub fn fill_by_plan(
        &mut self,
        picker: &mut Picker,
        sources: &BTreeMap<ConnId, Source>,
        room: impl Fn(&Picker, ConnId) -> Room,
    ) -> Filled {
        self.duplicates.set_wasted(picker.repeated());
        let sources = &self.expected(picker, sources);
        let mut filled = Filled::default();
        let mut order = Vec::new();
        for (&id, source) in sources {
            match self.depth(id, source) {
                0 => {}
                depth => order.push((id, source.subflow, depth)),
            }
        }
        // A connection without room cannot help to finish.
        let open = order.iter();
        let open = open.filter(|(id, ..)| blocks(room(picker, *id).new) > 0);
        let open: Vec<Subflow> = open.map(|(_, subflow, _)| *subflow).collect();
        let left = picker.free_blocks() + picker.asked_blocks();
        let plan = Plan::new(&open, left);
        let rate = |subflow: &Subflow| subflow.rate.unwrap_or(f64::INFINITY);
        order
            .sort_by(|(a, of_a, _), (b, of_b, _)| rate(of_b).total_cmp(&rate(of_a)).then(a.cmp(b)));
        self.make_room(picker, &plan, left, &order, &mut filled);
        let free = picker.free_blocks();
        for (id, subflow, depth) in order {
            let share = plan.share(&subflow, depth, free);
            let picked = picker.pick(id, share.min(blocks(room(picker, id).new)));
            filled.cancel.extend(picked.cancel);
            let mut requests = picked.requests;
            let asked = subflow.asked + requests.len();
            let most = depth.min(asked.saturating_add(blocks(room(picker, id).again)));
            let mut subflow = Subflow { asked, ..subflow };
            while subflow.rate.is_some()
                && subflow.asked < most
                && self.duplicates.is_allowed()
                && picker.free_blocks() == 0
            {
                let gain = |holder: ConnId, place: usize| {
                    plan.gain(&subflow, &sources.get(&holder)?.subflow, place)
                };
                let Some(request) = picker.duplicate(id, gain) else {
                    break;
                };
                requests.push(request);
                subflow.asked += 1;
                self.duplicates.count();
            }
            filled.requests.push((id, requests));
        }
        filled
    }
}

impl Requests {
    /// The connections, each with the rate at which it will deliver what is requested now.
    fn expected(
        &mut self,
        picker: &Picker,
        sources: &BTreeMap<ConnId, Source>,
    ) -> BTreeMap<ConnId, Source> {
        let now = self.reviewed;
        self.progress.observe(picker, sources, now);
        let expected = sources.iter().map(|(&id, source)| {
            let is_late = picker.is_late(id);
            let subflow = self.progress.expect(id, is_late, source.subflow, now);
            (id, Source { subflow, ..*source })
        });
        expected.collect()
    }

    /// Takes back what others will not deliver by the time all are done, for connections that have
    /// just come or have nearly nothing to do: when the first came, it was asked for all that was
    /// left. Once too much was wasted, nothing is taken back.
    fn make_room(
        &self,
        picker: &mut Picker,
        plan: &Plan,
        left: u64,
        order: &[(ConnId, Subflow, usize)],
        filled: &mut Filled,
    ) {
        let is_idle = |subflow: &Subflow| match subflow.rate {
            None => subflow.asked == 0,
            Some(_) => subflow.asked <= MIN_DEPTH && self.duplicates.may_waste(),
        };
        let idle = order.iter().filter(|(_, subflow, _)| is_idle(subflow));
        let idle = idle.count();
        if idle == 0 || picker.free_blocks() > 0 {
            return;
        }
        let part = usize::try_from(left.div_ceil(order.len() as u64)).unwrap_or(usize::MAX);
        let mut wanted = idle.saturating_mul(part);
        for (id, subflow, _) in order {
            let released = picker.take_back(*id, plan.keeps(subflow, part), wanted);
            wanted -= released.len();
            filled
                .cancel
                .extend(released.into_iter().map(|it| (*id, it)));
        }
    }
}

/// How many whole blocks fit into `bytes`.
fn blocks(bytes: u64) -> usize {
    usize::try_from(bytes / u64::from(BLOCK)).unwrap_or(usize::MAX)
}
