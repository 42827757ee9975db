//! The display of a seeder: a line for the whole, and one for each path-level peer.

use hawser_torrent::SeedProgress;

use crate::format;
use crate::out::plain;
use crate::paint::Paint;
use crate::screen::Live;

/// Lines on standard error, where that is a terminal.
#[derive(Debug)]
pub struct Lines {
    /// Whether unused paths have lines too.
    verbose: bool,
    paint: Paint,
    live: Option<Live>,
}

impl Lines {
    /// Lines that are removed when this is dropped; `verbose` for all paths.
    pub fn new(verbose: bool) -> Self {
        Self {
            verbose,
            paint: Paint::stderr(),
            live: Live::start(),
        }
    }

    /// Shows the progress.
    pub fn show(&mut self, progress: &SeedProgress) {
        let (verbose, paint) = (self.verbose, self.paint);
        if let Some(live) = &mut self.live {
            live.draw(|_| lines(progress, verbose, paint));
        }
    }
}

fn lines(progress: &SeedProgress, verbose: bool, paint: Paint) -> Vec<String> {
    let count = progress.peers.len();
    let mut lines = vec![format!(
        "{} sent, {}, {count} path-level peer{}",
        format::bytes(progress.uploaded_bytes),
        format::rate(progress.rate as f64),
        if count == 1 { "" } else { "s" },
    )];
    lines.extend(progress.peers.iter().map(|peer| {
        let why = peer.decision.as_ref();
        let why = why.map_or(String::new(), |why| plain(&format!("  {why}")));
        format!(
            "  {} over {}  {:>9}  {:>12}{}",
            peer.peer,
            peer.fingerprint.short(),
            format::bytes(peer.bytes),
            format::rate(peer.rate as f64),
            paint.faint(why),
        )
    }));
    let left = progress.left.iter().filter(|_| verbose);
    lines.extend(left.map(|left| {
        let why = plain(&left.decision.to_string());
        let path = left.fingerprint.short();
        format!("  {} over {path}  {}", left.peer, paint.faint(why))
    }));
    lines
}
