//! The display of bulk transfers: for each a bar for the whole, and a line for each path.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hawser_bulk::{PathProgress, Progress, TransferEvent};
use hawser_path::{Decision, Fingerprint};

use crate::format;
use crate::out::{errln, plain};
use crate::paint::Paint;
use crate::screen::Live;

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows transfers on standard error: in place on a terminal, otherwise as lines every few seconds.
pub struct Display {
    tracks: Vec<Track>,
    paint: Paint,
    live: Option<Live>,
    line_due: Instant,
    verbose: bool,
}

/// One transfer.
struct Track {
    name: String,
    progress: Progress,
    paths: Vec<PathProgress>,
    /// The rates, by what was delivered before.
    before: Option<Before>,
    decisions: HashMap<Fingerprint, Decision>,
    /// The last limit that the other side asked for, in bit/s.
    peer_limit: Option<u64>,
}

struct Before {
    at: Instant,
    whole: u64,
    paths: HashMap<Fingerprint, u64>,
    /// Smoothed, in bit/s.
    rate: f64,
    rates: HashMap<Fingerprint, f64>,
}

impl Display {
    /// A display for the transfers of these names; with `verbose`, decisions about paths are shown
    /// too.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, verbose: bool) -> Self {
        Self {
            tracks: names.into_iter().map(Track::new).collect(),
            paint: Paint::stderr(),
            live: Live::start(),
            line_due: Instant::now() + LINE_EVERY,
            verbose,
        }
    }

    /// Shows an event of transfer number `index`.
    pub fn show(&mut self, index: usize, event: TransferEvent) {
        let prefix = match &self.tracks[..] {
            [_] => String::new(),
            tracks => format!("{}: ", tracks[index].name),
        };
        let track = &mut self.tracks[index];
        match event {
            TransferEvent::Progress(progress, paths, at) => {
                track.measure(progress, paths, at);
                self.draw();
            }
            TransferEvent::Restarted => {
                errln!("{prefix}the server has lost the session; another one continues");
            }
            TransferEvent::Absent { reason, left } => {
                // Nothing is said of a time that is very long.
                let left = Some(format::left(left)).filter(|left| !left.is_empty());
                let left = left.map_or_else(String::new, |left| format!(", {left}"));
                errln!("{prefix}{}: waiting for it{left}", plain(&reason));
            }
            TransferEvent::Waiting { reason, left } => {
                let left = format::left(left);
                errln!("{prefix}{}: trying again, {left}", plain(&reason));
            }
            TransferEvent::Continued => errln!("{prefix}reached again: the transfer continues"),
            TransferEvent::Limited(Some(rate)) => {
                // It changes with the number of transfers there.
                let before = track.peer_limit.replace(rate);
                if self.verbose || before.is_none() {
                    let rate = format::limit(rate);
                    errln!("{prefix}limited to {rate} by the other side");
                }
            }
            TransferEvent::Limited(None) => {
                errln!("{prefix}no longer limited by the other side");
                track.peer_limit = None;
            }
            TransferEvent::Decided(fingerprint, _, decision) => {
                if self.verbose {
                    let decision = plain(&decision.to_string());
                    errln!("{prefix}{}: {decision}", fingerprint.short());
                }
                track.decisions.insert(fingerprint, decision);
            }
        }
    }

    fn draw(&mut self) {
        if let Some(mut live) = self.live.take() {
            live.draw(|columns| {
                let lines = self.tracks.iter();
                lines
                    .flat_map(|track| track.lines(&self.paint, columns))
                    .collect()
            });
            self.live = Some(live);
            return;
        }
        let now = Instant::now();
        if now >= self.line_due {
            self.line_due = now + LINE_EVERY;
            let several = self.tracks.len() > 1;
            for track in &self.tracks {
                let name = if several { &track.name } else { "" };
                let separator = if several { ": " } else { "" };
                errln!("{name}{separator}{}", track.summary());
            }
        }
    }

    /// Removes the display.
    pub fn clear(&mut self) {
        self.live = None;
    }
}

impl Track {
    fn new(name: &str) -> Self {
        Self {
            name: plain(name),
            progress: Progress::default(),
            paths: Vec::new(),
            before: None,
            decisions: HashMap::new(),
            peer_limit: None,
        }
    }

    /// The rate of the whole, in bit/s.
    fn rate(&self) -> f64 {
        self.before.as_ref().map_or(0.0, |before| before.rate)
    }

    fn summary(&self) -> String {
        let wanted = self.progress.total.saturating_sub(self.progress.skipped);
        let share = format::share(self.progress.verified, wanted);
        format!("{}, {}", share.trim_start(), format::rate(self.rate()))
    }

    fn lines(&self, paint: &Paint, columns: usize) -> Vec<String> {
        let rate = self.rate();
        let done = self.progress.verified;
        let total = self.progress.total.saturating_sub(self.progress.skipped);
        let left = total.saturating_sub(done) as f64 * 8.0 / rate.max(1.0);
        let left = format::left(Duration::from_secs_f64(left.min(1e9)));
        let share = format::share(done, total);
        let tail = format!("{share}  {:>12}  {left:<7}", format::rate(rate));
        let mut lines = vec![format::bar(&self.name, done, total, &tail, columns)];
        lines.extend(self.paths.iter().map(|path| self.line(path, paint)));
        lines
    }

    fn line(&self, path: &PathProgress, paint: &Paint) -> String {
        let rate = self
            .before
            .as_ref()
            .and_then(|one| one.rates.get(&path.fingerprint));
        let state = match (path.open, path.stalled) {
            (false, _) => paint.faint("closed  "),
            (true, true) => paint.bad("stalled "),
            (true, false) => paint.good("active  "),
        };
        let hops = path.path.as_ref().map_or(0, |path| path.info().hops());
        let mut text = format!(
            "  {}  {:<7}  {state} {:>12}  {:>9}",
            path.fingerprint.short(),
            format::hops(hops),
            format::rate(rate.copied().unwrap_or_default()),
            format::bytes(path.delivered),
        );
        if let Some(rtt) = path.rtt {
            text += &format!("  rtt {:>8}", format::millis(rtt));
            let lost = 100.0 * path.lost as f64 / path.packets.max(1) as f64;
            text += &format!("  lost {lost:>5.2} %");
        }
        if let Some(decision) = self.decisions.get(&path.fingerprint) {
            text += &format!("  {}", paint.faint(plain(&decision.to_string())));
        }
        text
    }

    /// Takes in the progress measured at `at`, and updates the rates.
    fn measure(&mut self, progress: Progress, paths: Vec<PathProgress>, at: Instant) {
        (self.progress, self.paths) = (progress, paths);
        let whole = progress.verified - progress.existing;
        let Some(before) = &mut self.before else {
            let paths = self.paths.iter();
            let paths = paths.map(|path| (path.fingerprint, path.delivered));
            self.before = Some(Before {
                at,
                whole,
                paths: paths.collect(),
                rate: 0.0,
                rates: HashMap::new(),
            });
            return;
        };
        let seconds = at.saturating_duration_since(before.at).as_secs_f64();
        if seconds < 0.1 {
            return;
        }
        // A second counts about half.
        let weight = 1.0 - 0.5_f64.powf(seconds);
        let smooth = |old: f64, bytes: u64| {
            let new = bytes as f64 * 8.0 / seconds;
            if old == 0.0 {
                new
            } else {
                old + weight * (new - old)
            }
        };
        before.rate = smooth(before.rate, whole.saturating_sub(before.whole));
        for path in &self.paths {
            let old = before.paths.insert(path.fingerprint, path.delivered);
            let bytes = path.delivered.saturating_sub(old.unwrap_or_default());
            let rate = before.rates.entry(path.fingerprint).or_default();
            *rate = smooth(*rate, bytes);
        }
        (before.at, before.whole) = (at, whole);
    }
}
