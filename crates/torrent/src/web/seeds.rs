//! Which web seed is asked for what, and when again.
//!
//! Pure: no I/O; the caller passes the time. The owner of the torrent asks for orders after each batch of
//! events, and reports what arrived and how each run ended.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_backoff::Backoff;

use super::places::Places;
use super::seed::{
    FIRST_RUN, Failure, Fetching, MAX_RETRY_AFTER, MISSING_PAUSES, PAUSES, RUN_BLOCKS, RunId,
    State, WebSeed,
};
use crate::metainfo::Metainfo;
use crate::picker::{ConnId, GroupId, Picker, Placed};
use crate::pipeline::Meter;
use crate::progress::WebSeedProgress;
use crate::wire::{BLOCK, Request};

/// Most web seeds used: a torrent may name any number.
pub(crate) const MAX_WEB_SEEDS: usize = 16;

/// Most files that are remembered as missing at one web seed; with more, all of it counts as missing.
const MAX_MISSING: usize = 256;

/// A web seed, as its place among those of the torrent.
pub(crate) type SeedId = usize;

/// Blocks to be fetched from a web seed, in this order.
#[derive(Debug)]
pub(crate) struct Run {
    pub seed: SeedId,
    pub run: RunId,
    pub conn: ConnId,
    pub places: Arc<Places>,
    pub requests: Vec<Request>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum WebOrder {
    /// Fetch a run.
    Fetch(Run),
    /// Leave out this many blocks at the end of a run: others fetch them.
    Shorten(RunId, usize),
    /// Fetch nothing more of a run.
    Stop(RunId),
}

/// The web seeds of a torrent.
#[derive(Debug, Default)]
pub(crate) struct WebSeeds {
    seeds: Vec<WebSeed>,
    last_run: RunId,
}

impl WebSeeds {
    /// Those that the torrent names, at most [`MAX_WEB_SEEDS`]; `name` gives each the connection and the peer
    /// that it is to the picker.
    pub fn new(
        metainfo: &Metainfo,
        picker: &mut Picker,
        mut name: impl FnMut(&str) -> (ConnId, GroupId),
        now: Instant,
    ) -> Self {
        let mut urls: Vec<&String> = Vec::new();
        for url in &metainfo.sources.web_seeds {
            if urls.len() < MAX_WEB_SEEDS && !urls.contains(&url) {
                urls.push(url);
            }
        }
        let seed = |url: &String| {
            let (conn, group) = name(url);
            let places = Places::new(metainfo, url);
            let last_error = places.as_ref().err().map(ToString::to_string);
            let places = places.ok().map(Arc::new);
            if let Some(places) = &places {
                picker.add_conn(conn, group);
                picker.set_has(conn, places.has(&[]));
            }
            WebSeed {
                url: url.clone(),
                conn,
                group,
                state: match places {
                    Some(_) => State::Ready(now),
                    None => State::Dropped,
                },
                places,
                backoff: Backoff::new(PAUSES.0, PAUSES.1),
                missing: Vec::new(),
                missing_backoff: Backoff::new(MISSING_PAUSES.0, MISSING_PAUSES.1),
                restore_at: None,
                next_run: FIRST_RUN,
                meter: Meter::new(now),
                bytes: 0,
                last_error,
            }
        };
        Self {
            seeds: urls.into_iter().map(seed).collect(),
            last_run: 0,
        }
    }

    /// Whether any may still deliver something.
    pub fn any_usable(&self) -> bool {
        self.seeds.iter().any(|seed| !seed.is_dropped())
    }

    /// What is to be done now. `peers_idle` says that peers wait for something to be requested of them, `limit`
    /// the most that is to arrive, in bytes per second. Also returns requests to peers, to be cancelled.
    pub fn orders(
        &mut self,
        picker: &mut Picker,
        peers_idle: bool,
        limit: Option<u64>,
        now: Instant,
    ) -> (Vec<WebOrder>, Vec<Placed>) {
        let (mut orders, mut cancel) = (Vec::new(), Vec::new());
        for id in 0..self.seeds.len() {
            self.restore(id, picker, now);
            let seed = &mut self.seeds[id];
            // All that it was asked for is there, or not wanted any more.
            if let State::Fetching(fetching) = &seed.state
                && picker.asked(seed.conn) == 0
            {
                orders.push(WebOrder::Stop(fetching.run));
                seed.end(Duration::ZERO, now);
            }
        }
        if picker.is_complete() {
            return (orders, cancel);
        }
        for round in 0..2 {
            for id in 0..self.seeds.len() {
                let (run, placed) = self.begin(id, picker, limit, now);
                orders.extend(run.map(WebOrder::Fetch));
                cancel.extend(placed);
            }
            let any_idle = self
                .seeds
                .iter()
                .any(|it| it.is_ready(now) && picker.is_interesting(it.conn));
            // In the second round, what was given up in the first is asked of others.
            if round > 0 || picker.free_blocks() > 0 || !(peers_idle || any_idle) {
                break;
            }
            self.give_way(picker, &mut orders, now);
        }
        (orders, cancel)
    }

    /// Begins a run of a web seed, if it may be asked for one, and there is something to ask for.
    fn begin(
        &mut self,
        id: SeedId,
        picker: &mut Picker,
        limit: Option<u64>,
        now: Instant,
    ) -> (Option<Run>, Vec<Placed>) {
        let seed = &mut self.seeds[id];
        let Some(places) = seed.places.as_ref().filter(|_| seed.is_ready(now)) else {
            return (None, Vec::new());
        };
        // Of what a limit delays, others can be asked meanwhile.
        let by_limit = limit.map_or(usize::MAX, |limit| {
            let blocks = limit.saturating_mul(4) / u64::from(BLOCK);
            usize::try_from(blocks).unwrap_or(usize::MAX)
        });
        let most = seed.next_run.min(by_limit).max(*RUN_BLOCKS.start());
        let picked = picker.pick_run(seed.conn, most);
        if picked.requests.is_empty() {
            return (None, picked.cancel);
        }
        self.last_run += 1;
        let run = Run {
            seed: id,
            run: self.last_run,
            conn: seed.conn,
            places: Arc::clone(places),
            requests: picked.requests,
        };
        seed.state = State::Fetching(Fetching {
            run: run.run,
            since: now,
            heard: now,
            bytes: 0,
        });
        seed.meter.restart(now);
        (Some(run), picked.cancel)
    }

    /// Takes back what no web seed delivers within about a second, as others wait for something to do.
    fn give_way(&mut self, picker: &mut Picker, orders: &mut Vec<WebOrder>, now: Instant) {
        for seed in &mut self.seeds {
            let State::Fetching(fetching) = &seed.state else {
                continue;
            };
            let run = fetching.run;
            let keep = match seed.imminent(now) {
                0 => 0,
                imminent => imminent.max(picker.bound_requests(seed.conn)),
            };
            let released = picker.take_back(seed.conn, keep, usize::MAX).len();
            if keep == 0 {
                // It would ask for the same again at once.
                let pause = seed.backoff.fail();
                seed.last_error = Some("it sends nothing".to_owned());
                seed.end(pause, now);
                orders.push(WebOrder::Stop(run));
            } else if released > 0 {
                orders.push(WebOrder::Shorten(run, released));
            }
        }
    }

    /// Takes note of a block of `bytes` bytes that a web seed has sent.
    pub fn on_block(&mut self, id: SeedId, run: RunId, bytes: u64, now: Instant) {
        let Some(seed) = self.seeds.get_mut(id) else {
            return;
        };
        seed.bytes += bytes;
        seed.meter.add(now, bytes);
        if let Some(fetching) = seed.fetches(run) {
            fetching.heard = now;
            fetching.bytes += bytes;
            seed.backoff.reset();
        }
    }

    /// Takes note of the end of a run: what was not fetched of it is free again.
    pub fn on_end(
        &mut self,
        id: SeedId,
        run: RunId,
        ended: Result<(), Failure>,
        picker: &mut Picker,
        now: Instant,
    ) {
        let Some(seed) = self.seeds.get_mut(id) else {
            return;
        };
        if seed.fetches(run).is_none() {
            return;
        }
        picker.release(seed.conn);
        let (pause, why) = match ended {
            Ok(()) => (Duration::ZERO, None),
            Err(Failure::Busy { retry_after, why }) => {
                let pause = seed.backoff.fail();
                let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
                (pause.max(asked), Some(why))
            }
            Err(Failure::Failed(why)) => (seed.backoff.fail(), Some(why)),
            Err(Failure::Missing { file, why }) => {
                seed.lose(file, picker, now);
                (Duration::ZERO, Some(why))
            }
        };
        if let Some(why) = &why {
            tracing::info!(url = seed.url, why, "a web seed failed");
        }
        // What is missing stays so until it is asked for again.
        let before = seed.last_error.take().filter(|_| seed.restore_at.is_some());
        seed.last_error = why.or(before);
        seed.end(pause, now);
    }

    /// Asks a web seed for missing files again once that is due.
    fn restore(&mut self, id: SeedId, picker: &mut Picker, now: Instant) {
        let seed = &mut self.seeds[id];
        if seed.restore_at.is_some_and(|at| at <= now)
            && let Some(places) = &seed.places
        {
            seed.restore_at = None;
            seed.last_error = None;
            seed.missing.clear();
            picker.set_has(seed.conn, places.has(&[]));
        }
    }

    /// Never uses the web seed `group` again, which has sent wrong data. Returns the run to be stopped; `None`
    /// if `group` is no web seed in use.
    pub fn ban(
        &mut self,
        group: GroupId,
        reason: &str,
        picker: &mut Picker,
    ) -> Option<Vec<WebOrder>> {
        let mut seeds = self.seeds.iter_mut();
        let seed = seeds.find(|seed| seed.group == group && !seed.is_dropped())?;
        let stop = match &seed.state {
            State::Fetching(fetching) => vec![WebOrder::Stop(fetching.run)],
            _ => Vec::new(),
        };
        tracing::warn!(url = seed.url, reason, "a web seed was dropped");
        picker.remove_conn(seed.conn);
        seed.state = State::Dropped;
        // Files that it lacked are not asked for again.
        seed.restore_at = None;
        seed.last_error = Some(reason.to_owned());
        Some(stop)
    }

    /// The URL of a web seed, as the torrent has it.
    pub fn url(&self, id: SeedId) -> Option<&str> {
        self.seeds.get(id).map(|seed| seed.url.as_str())
    }

    /// Each URL, with the reason why nothing is fetched from it.
    pub fn troubles(&self) -> impl Iterator<Item = (String, String)> {
        self.seeds.iter().map(|seed| {
            let why = seed.last_error.clone();
            (
                seed.url.clone(),
                why.unwrap_or_else(|| "it sends nothing".to_owned()),
            )
        })
    }

    /// What each does.
    pub fn progress(&self, now: Instant) -> Vec<WebSeedProgress> {
        let seeds = self.seeds.iter();
        let shown = seeds.map(|seed| WebSeedProgress {
            url: seed.url.clone(),
            state: seed.shown(now),
            bytes: seed.bytes,
            rate: (seed.meter.rate(now) * 8.0).round() as u64,
            last_error: seed.last_error.clone(),
        });
        shown.collect()
    }
}

impl WebSeed {
    /// Takes note that a file is not there.
    fn lose(&mut self, file: Range<u64>, picker: &mut Picker, now: Instant) {
        self.missing.push(file);
        if self.missing.len() > MAX_MISSING {
            self.missing.clear();
            self.missing.push(0..u64::MAX);
        }
        let restore_at = self
            .restore_at
            .is_none()
            .then(|| now + self.missing_backoff.fail());
        self.restore_at = self.restore_at.or(restore_at);
        if let Some(places) = &self.places {
            picker.set_has(self.conn, places.has(&self.missing));
        }
    }
}
