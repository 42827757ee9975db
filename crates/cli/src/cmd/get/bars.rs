//! The display of a download: a bar for the whole, and a line for each path-level peer.

use std::time::{Duration, Instant};

use hawser_torrent::{
    PathProgress, PathState, PeerAddr, Phase, Progress, WebSeedProgress, WebSeedState,
};

use super::seeding;
use crate::cmd::reported::Reported;
use crate::format;
use crate::out::{errln, plain};
use crate::paint::Paint;
use crate::screen::Live;

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Time between lines while seeding, which may take days.
const SEEDING_LINE_EVERY: Duration = Duration::from_secs(60);

/// What is shown while [`knows_no_peer`].
const NO_PEER: &str = "no peer found yet";

/// Shows a download on standard error: in place on a terminal, otherwise as a line every few
/// seconds.
pub struct Bars {
    name: String,
    paint: Paint,
    live: Option<Live>,
    line_due: Instant,
    /// Whether unused paths are shown, too.
    verbose: bool,
    reported: Reported,
}

/// Bytes of selected files, rounded up to whole pieces: those that are there, and all.
fn wanted(progress: &Progress) -> (u64, u64) {
    let files = &progress.files;
    (files.wanted_verified_bytes, files.wanted_bytes)
}

impl Bars {
    /// Bars for the torrent `name`; with `verbose`, of all paths.
    pub fn new(name: &str, verbose: bool) -> Self {
        Self {
            name: plain(name),
            paint: Paint::stderr(),
            live: Live::start(),
            line_due: Instant::now() + LINE_EVERY,
            verbose,
            reported: Reported::default(),
        }
    }

    /// Shows the progress.
    pub fn show(&mut self, progress: &Progress) {
        if let Some(mut live) = self.live.take() {
            live.draw(|columns| self.lines(progress, columns));
            self.live = Some(live);
            return;
        }
        if self.verbose {
            show_reasons(&mut self.reported, progress);
        }
        self.show_line(progress);
    }

    fn lines(&self, progress: &Progress, columns: usize) -> Vec<String> {
        let mut lines = vec![self.whole(progress, columns)];
        let used = progress.paths.iter();
        let used = used.filter(|p| self.verbose || p.state != PathState::Left || p.bytes > 0);
        let several = scion_peers(progress) > 1;
        lines.extend(used.map(|path| describe(path, several, self.paint)));
        let web_seeds = progress.web_seeds.iter();
        lines.extend(web_seeds.map(|seed| describe_web_seed(seed, self.paint)));
        if progress.rate == 0 && progress.phase != Phase::Seeding {
            if knows_no_peer(progress) {
                lines.push(self.paint.faint(format!("  {NO_PEER}")));
            }
            let idle = progress.idle_peers.iter();
            let idle = idle.map(|(peer, reason)| plain(&format!("  {peer}: {reason}")));
            lines.extend(idle.map(|line| self.paint.bad(line)));
        }
        lines
    }

    fn whole(&self, progress: &Progress, columns: usize) -> String {
        let (done, total) = match progress.phase {
            Phase::Checking => (progress.checked_bytes, progress.total_bytes),
            _ => wanted(progress),
        };
        let share = format::share(done, total);
        let tail = match progress.phase {
            Phase::Checking => format!("{share}  checking what is there"),
            Phase::Seeding => seeding::state(progress),
            _ => {
                let rate = format::rate(progress.rate as f64);
                let left = total.saturating_sub(done).saturating_mul(8);
                let left = left.checked_div(progress.rate).map(Duration::from_secs);
                let left = left.map_or_else(String::new, format::left);
                format!("{share}  {rate:>12}  {left:<7}")
            }
        };
        format::bar(&self.name, done, total, &tail, columns)
    }

    fn show_line(&mut self, progress: &Progress) {
        let now = Instant::now();
        if now < self.line_due {
            return;
        }
        self.line_due = now + LINE_EVERY;
        if progress.phase == Phase::Seeding {
            self.line_due = now + SEEDING_LINE_EVERY;
            return seeding::show_line(progress);
        }
        let (done, total) = wanted(progress);
        let share = 100.0 * done as f64 / total.max(1) as f64;
        errln!(
            "{share:.0} % of {}, {}",
            format::bytes(total),
            format::rate(progress.rate as f64)
        );
        if progress.rate == 0 {
            if knows_no_peer(progress) {
                errln!("  {NO_PEER}");
            }
            for reason in idle_reasons(progress) {
                errln!("  {}", plain(&reason));
            }
        }
    }

    /// Removes the bars.
    pub fn clear(&mut self) {
        self.live = None;
    }
}

/// The number of SCION peers.
fn scion_peers(progress: &Progress) -> usize {
    let peers = progress.paths.iter().map(|path| path.peer);
    let mut peers: Vec<PeerAddr> = peers.filter(|peer| peer.scion().is_some()).collect();
    peers.dedup();
    peers.len()
}

/// Whether there is nobody to download from, as far as is known.
fn knows_no_peer(progress: &Progress) -> bool {
    progress.paths.is_empty() && progress.idle_peers.is_empty() && progress.web_seeds.is_empty()
}

/// Reasons why no data is received: the error of each path and peer.
fn idle_reasons(progress: &Progress) -> Vec<String> {
    let paths = progress.paths.iter().filter_map(|path| {
        let error = path.last_error.as_ref()?;
        Some(match path.peer {
            PeerAddr::Scion(peer) => {
                format!("{peer} over {}: {error}", path.fingerprint.short())
            }
            PeerAddr::Ip(peer) => format!("{peer}: {error}"),
        })
    });
    let peers = progress.idle_peers.iter();
    let peers = peers.map(|(peer, reason)| format!("{peer}: {reason}"));
    let web_seeds = progress.web_seeds.iter().filter_map(|seed| {
        let error = seed.last_error.as_ref()?;
        Some(format!("{}: {error}", seed.url))
    });
    paths.chain(peers).chain(web_seeds).collect()
}

/// One line of a web seed.
fn describe_web_seed(seed: &WebSeedProgress, paint: Paint) -> String {
    let state = format!("{:<8}", seed.state.to_string());
    let state = match seed.state {
        WebSeedState::Fetching => paint.good(state),
        WebSeedState::Dropped => paint.bad(state),
        _ => paint.faint(state),
    };
    let mut text = format!(
        "  {}  {state} {:>12}  {:>9}",
        plain(&seed.url),
        format::rate(seed.rate as f64),
        format::bytes(seed.bytes),
    );
    if let Some(error) = &seed.last_error {
        text += &format!("  {}", paint.faint(plain(error)));
    }
    text
}

/// One line of a path-level peer, with the peer's address if there are `several` SCION peers.
fn describe(path: &PathProgress, several: bool, paint: Paint) -> String {
    let place = match path.peer {
        PeerAddr::Scion(peer) => {
            let peer = match several {
                true => format!("{peer}  "),
                false => String::new(),
            };
            let hops = format::hops(path.hops);
            format!("{peer}{}  {hops:<7}", path.fingerprint.short())
        }
        PeerAddr::Ip(peer) => peer.to_string(),
    };
    let state = format!("{:<8}", path.state.to_string());
    let state = match path.state {
        PathState::Active => paint.good(state),
        PathState::Stalled => paint.bad(state),
        _ => paint.faint(state),
    };
    let mut text = format!(
        "  {place}  {state} {:>12}  {:>9}",
        format::rate(path.rate as f64),
        format::bytes(path.bytes),
    );
    if let Some(rtt) = path.rtt {
        text += &format!("  rtt {:>8}", format::millis(rtt));
    }
    if let Some(why) = why(path) {
        text += &format!("  {}", paint.faint(why));
    }
    text
}

/// The decision on a path and its reason, in one line: `taken: shares no interface: 2 hops`. Parts
/// of the text may come from a peer.
fn why(path: &PathProgress) -> Option<String> {
    let decision = path.decision.as_ref().map(ToString::to_string);
    let down = matches!(path.state, PathState::Waiting | PathState::Left);
    let said = |error: &String| decision.as_ref().is_some_and(|it| it.ends_with(error));
    let error = path.last_error.clone().filter(|_| down);
    let error = error.filter(|error| !said(error));
    let parts: Vec<String> = decision.into_iter().chain(error).collect();
    (!parts.is_empty()).then(|| plain(&parts.join("; ")))
}

/// Prints a line on standard error for each path whose reason is new.
fn show_reasons(reported: &mut Reported, progress: &Progress) {
    for path in &progress.paths {
        if let Some(why) = why(path)
            && reported.is_new_decision(path.peer, path.fingerprint, &why)
        {
            errln!("{} over {}: {why}", path.peer, path.fingerprint.short());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_without_peers_says_so() {
        let bars = Bars::new("one.bin", false);
        let mut progress = Progress::default();
        progress.phase = Phase::Downloading;
        let said = |progress: &Progress| bars.lines(progress, 80).join("\n").contains(NO_PEER);
        assert!(said(&progress));
        let banned = "it sent wrong data".to_owned();
        let peer = "192.0.2.1:6881".parse().unwrap();
        progress.idle_peers.push((PeerAddr::Ip(peer), banned));
        assert!(!said(&progress));
    }
}
