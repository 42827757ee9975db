//! One tracker: what it knows of the client, and what is known of it.

use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_backoff::Backoff;

use super::options::AnnounceId;
use crate::message::{Answer, Event, Retry, TrackerError};
use crate::url::TrackerUrl;

/// Time between announces, where the tracker names none.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// Least time between announces, where the tracker names none.
const DEFAULT_MIN_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Bounds of the time between two announces, whatever a tracker wishes.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(60);
const LONGEST_INTERVAL: Duration = Duration::from_secs(3 * 3600);
/// Bounds of the pause after failures.
const FIRST_PAUSE: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The port that is announced to a tracker that refuses 0, where the client accepts no peers: no client uses it.
pub(super) const PORT_OF_NONE: u16 = 1;

/// An announce under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub id: AnnounceId,
    pub event: Event,
    /// Bytes missing, as announced.
    pub left: u64,
    /// The port, as announced.
    pub port: u16,
}

/// What a tracker knows of the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Since when: a `started` was answered.
    pub since: Instant,
    is_leecher: bool,
}

/// A tracker of a torrent.
#[derive(Debug)]
pub(super) struct Tracker {
    pub url: String,
    tier: usize,
    /// Why it cannot be asked at all.
    unsupported: Option<String>,
    pub flight: Option<Flight>,
    pub known: Option<Known>,
    /// It has refused an announce with port 0.
    refuses_no_port: bool,
    /// Since when `stopped` is to be sent.
    pub to_stop: Option<Instant>,
    pub tracker_id: Option<Vec<u8>>,
    pub interval: Duration,
    pub min_interval: Duration,
    backoff: Backoff,
    /// How long it is left alone after a failure.
    pause: Option<Pause>,
    /// Until when it is asked nothing that is no news, whatever becomes of the others, as it has answered.
    rest: Option<Instant>,
    shown: Shown,
}

#[derive(Debug, Clone, Copy)]
enum Pause {
    Until(Instant),
    Forever,
}

/// What is kept for people.
#[derive(Debug, Default)]
struct Shown {
    asked: Option<Instant>,
    answered: Option<Instant>,
    error: Option<(Instant, String)>,
    warning: Option<String>,
    complete: Option<u32>,
    incomplete: Option<u32>,
    peers: usize,
}

/// What a tracker does at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackerState {
    /// It was not asked yet.
    Idle,
    /// An announce is under way.
    Announcing,
    /// Its last answer was one.
    Working,
    /// The last announce has failed.
    Failing,
    /// It is not asked again: it refuses the torrent for ever, or its URL is not supported.
    Unused,
}

/// A tracker, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerStatus {
    /// Its URL.
    pub url: String,
    /// Number of its tier, from 0.
    pub tier: usize,
    /// What it does.
    pub state: TrackerState,
    /// When it was last asked.
    pub asked: Option<Instant>,
    /// When it last answered.
    pub answered: Option<Instant>,
    /// Why the last announce failed that did, and when; `None` since it has answered.
    pub error: Option<(Instant, String)>,
    /// The warning of its last answer.
    pub warning: Option<String>,
    /// Seeders, as of its last answer.
    pub complete: Option<u32>,
    /// Leechers, as of its last answer.
    pub incomplete: Option<u32>,
    /// How many peers its last answer had.
    pub peers: usize,
    /// Failures in a row.
    pub failures: u32,
    /// When it is asked next, if it is the next one to be asked.
    pub next: Option<Instant>,
}

impl TrackerStatus {
    /// A tracker that is not asked, as its torrent does not run.
    pub fn idle(url: &str, tier: usize) -> Self {
        Tracker::new(url.to_owned(), tier).status(None)
    }
}

impl Tracker {
    pub fn new(url: String, tier: usize) -> Self {
        Self {
            unsupported: url
                .parse::<TrackerUrl>()
                .err()
                .map(|error| error.to_string()),
            url,
            tier,
            flight: None,
            known: None,
            refuses_no_port: false,
            to_stop: None,
            tracker_id: None,
            interval: DEFAULT_INTERVAL,
            min_interval: DEFAULT_MIN_INTERVAL,
            backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            pause: None,
            rest: None,
            shown: Shown::default(),
        }
    }

    /// Whether it may know of the client.
    pub fn may_know(&self) -> bool {
        self.known.is_some() || self.flight.is_some()
    }

    /// The torrent has it no longer: with `stopped` to be sent, once no other announce is under way. `None` if
    /// it knows nothing of the client.
    pub fn removed(mut self, now: Instant) -> Option<Self> {
        let is_leaving = |flight: &Flight| flight.event == Event::Stopped;
        if !self.flight.as_ref().is_some_and(is_leaving) && self.may_know() {
            self.to_stop.get_or_insert(now);
        }
        (self.to_stop.is_some() || self.flight.is_some()).then_some(self)
    }

    /// The torrent has it, in this tier, as it had before.
    pub fn listed_again(mut self, tier: usize) -> Self {
        self.to_stop = None;
        self.tier = tier;
        self
    }

    /// Since when `stopped` is due: not while another announce is under way, which might be the later one to arrive.
    pub fn stop_due(&self) -> Option<Instant> {
        self.to_stop.filter(|_| self.flight.is_none())
    }

    /// Whether `stopped` is due, which is sent now.
    pub fn take_stop(&mut self) -> bool {
        self.stop_due().is_some() && self.to_stop.take().is_some()
    }

    /// When it may be asked, `completed` or not; `None` if never.
    pub fn ready(&self, since: Instant, completed: bool) -> Option<Instant> {
        let has_news = completed && self.is_to_be_told();
        let rest = self.rest.filter(|_| !has_news);
        let since = rest.map_or(since, |rest| rest.max(since));
        match self.pause {
            _ if self.is_unused() => None,
            Some(Pause::Until(until)) => Some(until.max(since)),
            _ => Some(since),
        }
    }

    /// Whether a completed download is to be reported: it knows the client, as a leecher.
    pub fn is_to_be_told(&self) -> bool {
        self.known.is_some_and(|known| known.is_leecher)
    }

    /// An announce was answered.
    pub fn answer(&mut self, flight: &Flight, answer: &Answer, now: Instant) {
        self.backoff.reset();
        self.pause = None;
        self.rest = (flight.event != Event::Stopped).then_some(now + SHORTEST_INTERVAL);
        match flight.event {
            Event::Stopped => self.known = None,
            Event::Started => {
                self.known = Some(Known {
                    since: now,
                    is_leecher: flight.left > 0,
                });
            }
            Event::Completed => {
                if let Some(known) = &mut self.known {
                    known.is_leecher = false;
                }
            }
            Event::None => {}
        }
        if answer.tracker_id.is_some() {
            self.tracker_id.clone_from(&answer.tracker_id);
        }
        let clamp = |time: Duration| time.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        self.interval = clamp(answer.interval.unwrap_or(DEFAULT_INTERVAL));
        self.min_interval = match answer.min_interval {
            Some(min) => clamp(min),
            None => DEFAULT_MIN_INTERVAL.min(self.interval),
        };
        self.interval = self.interval.max(self.min_interval);
        self.shown = Shown {
            asked: self.shown.asked,
            answered: Some(now),
            error: None,
            warning: answer.warning.clone(),
            complete: answer.complete,
            incomplete: answer.incomplete,
            peers: answer.peers.len(),
        };
    }

    /// An announce begins.
    pub fn ask(&mut self, flight: Flight, now: Instant) {
        self.flight = Some(flight);
        self.shown.asked = Some(now);
    }

    /// The port to announce for one at which the client accepts peers; 0 if it accepts none.
    pub fn port(&self, port: u16) -> u16 {
        match port {
            0 if self.refuses_no_port => PORT_OF_NONE,
            port => port,
        }
    }

    /// An announce has failed. One that was refused with port 0 is repeated at once with another port: some
    /// trackers take no client that accepts no peers.
    pub fn fail(&mut self, flight: &Flight, error: &TrackerError, rng: &mut Rng, now: Instant) {
        if flight.port == 0 && matches!(error, TrackerError::Refused { .. }) {
            self.refuses_no_port = true;
            return;
        }
        // Clients that a tracker has lost at once do not come back at once.
        let spread = self.backoff.fail().mul_f64(0.75 + rng.f64() / 2.0);
        self.pause = Some(match error {
            TrackerError::Refused { retry, .. } => match retry {
                Retry::Never => Pause::Forever,
                Retry::After(time) => Pause::Until(now + (*time).clamp(spread, LONGEST_INTERVAL)),
                Retry::Unsaid => Pause::Until(now + spread),
            },
            TrackerError::Failed(_) => Pause::Until(now + spread),
        });
        self.shown.error = Some((now, error.to_string()));
    }

    /// For people; `next` is when it is asked next.
    pub fn status(&self, next: Option<Instant>) -> TrackerStatus {
        let shown = &self.shown;
        let state = match () {
            () if self.flight.is_some() => TrackerState::Announcing,
            () if self.is_unused() => TrackerState::Unused,
            () if shown.error.is_some() => TrackerState::Failing,
            () if shown.answered.is_some() => TrackerState::Working,
            () => TrackerState::Idle,
        };
        TrackerStatus {
            url: self.url.clone(),
            tier: self.tier,
            state,
            asked: shown.asked,
            answered: shown.answered,
            error: shown.error.clone(),
            warning: self.unsupported.clone().or_else(|| shown.warning.clone()),
            complete: shown.complete,
            incomplete: shown.incomplete,
            peers: shown.peers,
            failures: self.backoff.failures(),
            next,
        }
    }

    /// Whether it is not asked again.
    fn is_unused(&self) -> bool {
        self.unsupported.is_some() || matches!(self.pause, Some(Pause::Forever))
    }
}
