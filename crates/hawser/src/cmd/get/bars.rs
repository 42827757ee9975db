//! The bars of a download: the whole, and a line for each path-level peer.

use super::{seeding, told};
use crate::cmd::news::News;
use crate::format;
use crate::out::{errln, plain};
use hawser_torrent::{PathProgress, PathState, PeerAddr, Phase, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::{
    cell::{Cell, RefCell},
    io::IsTerminal,
    time::{Duration, Instant},
};

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The same while seeding, which may go on for days.
const SEEDING_LINE_EVERY: Duration = Duration::from_secs(60);

/// Shows a download on standard error: bars on a terminal, now and then a
/// line elsewhere.
pub struct Bars {
    all: MultiProgress,
    whole: ProgressBar,
    paths: RefCell<Vec<ProgressBar>>,
    terminal: bool,
    line_due: Cell<Instant>,
    /// Paths that are not used are shown too.
    verbose: bool,
    news: RefCell<News>,
}

impl Bars {
    /// Bars for the torrent of that name; `verbose` for all paths.
    pub fn new(name: &str, verbose: bool) -> Bars {
        let all = MultiProgress::new();
        let style =
            ProgressStyle::with_template("{prefix} {wide_bar} {bytes}/{total_bytes} {msg} {eta}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let whole = all.add(ProgressBar::new(0).with_style(style));
        whole.set_prefix(plain(name));
        Bars {
            all,
            whole,
            paths: RefCell::default(),
            terminal: std::io::stderr().is_terminal(),
            line_due: Cell::new(Instant::now() + LINE_EVERY),
            verbose,
            news: RefCell::default(),
        }
    }

    /// Shows how it is doing.
    pub fn show(&self, progress: &Progress) {
        if !self.terminal {
            if self.verbose {
                told::show(&mut self.news.borrow_mut(), progress);
            }
            return self.show_line(progress);
        }
        self.whole.set_length(progress.total_bytes);
        match progress.phase {
            Phase::Checking => {
                self.whole.set_position(progress.checked_bytes);
                self.whole.set_message("checking what is there");
            }
            Phase::Seeding => {
                self.whole.set_position(progress.verified_bytes);
                self.whole.set_message(seeding::state(progress));
            }
            _ => {
                self.whole.set_position(progress.verified_bytes);
                self.whole.set_message(format::rate(progress.rate as f64));
            }
        }
        let used: Vec<_> = progress
            .paths
            .iter()
            .filter(|p| self.verbose || p.state != PathState::Left || p.bytes > 0)
            .collect();
        let mut lines = self.paths.borrow_mut();
        while lines.len() < used.len() {
            let style = ProgressStyle::with_template("{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            lines.push(self.all.add(ProgressBar::new_spinner().with_style(style)));
        }
        for line in lines.drain(used.len()..) {
            line.finish_and_clear();
        }
        for (line, path) in lines.iter().zip(used) {
            line.set_message(describe(path));
        }
        let stuck = progress.rate == 0 && progress.phase != Phase::Seeding;
        if let Some((peer, reason)) = progress.idle_peers.first().filter(|_| stuck) {
            self.whole.set_message(format!("{peer}: {reason}"));
        }
    }

    fn show_line(&self, progress: &Progress) {
        let now = Instant::now();
        if now < self.line_due.get() {
            return;
        }
        self.line_due.set(now + LINE_EVERY);
        if progress.phase == Phase::Seeding {
            self.line_due.set(now + SEEDING_LINE_EVERY);
            return seeding::show_line(progress);
        }
        let share = 100.0 * progress.verified_bytes as f64 / progress.total_bytes.max(1) as f64;
        errln!(
            "{share:.0} % of {}, {}",
            format::bytes(progress.total_bytes),
            format::rate(progress.rate as f64)
        );
        if progress.rate == 0 {
            for reason in reasons(progress) {
                errln!("  {reason}");
            }
        }
    }

    /// Takes the bars away while `print` prints something.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.all.suspend(print)
    }

    /// Takes the bars away.
    pub fn clear(&self) {
        self.paths
            .borrow()
            .iter()
            .for_each(ProgressBar::finish_and_clear);
        self.whole.finish_and_clear();
    }
}

/// Why nothing comes: what is wrong with each path and peer.
fn reasons(progress: &Progress) -> Vec<String> {
    let paths = progress.paths.iter().filter_map(|path| {
        let error = path.last_error.as_ref()?;
        Some(match path.peer {
            PeerAddr::Scion(peer) => {
                format!("{peer} over {}: {error}", path.fingerprint.short())
            }
            PeerAddr::Ip(peer) => format!("{peer}: {error}"),
        })
    });
    let peers = progress
        .idle_peers
        .iter()
        .map(|(peer, reason)| format!("{peer}: {reason}"));
    paths.chain(peers).collect()
}

fn describe(path: &PathProgress) -> String {
    let way = match path.peer {
        PeerAddr::Scion(_) => format!("{} {} hops", path.fingerprint.short(), path.hops),
        PeerAddr::Ip(peer) => peer.to_string(),
    };
    let mut text = format!(
        "  {way}  {:<8} {:>12}  {:>10}",
        path.state.to_string(),
        format::rate(path.rate as f64),
        format::bytes(path.bytes),
    );
    if let Some(rtt) = path.rtt {
        text += &format!("  rtt {}", format::millis(rtt));
    }
    if let Some(why) = told::why(path) {
        text += &format!("  {why}");
    }
    text
}
