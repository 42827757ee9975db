//! Fetching what the `.torrent` file of a magnet link would say.

use std::pin::pin;
use std::time::{Duration, Instant};

use hawser_magnet::{Magnet, MagnetPeer};
use hawser_torrent::{Metainfo, PeerAddr, Resolve, ResolveProgress};

use crate::cmd::find::Ways;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::errln;
use crate::screen::Live;

/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The peers that a link names, those at host names by all addresses of the host.
///
/// # Errors
/// A failed job, if the name of a host is not known.
pub async fn peers(magnet: &Magnet) -> Result<Vec<PeerAddr>, Failure> {
    let mut peers = Vec::new();
    for peer in &magnet.peers {
        match peer {
            MagnetPeer::Addr(addr) => peers.push(*addr),
            MagnetPeer::Name(name) => {
                let found = tokio::net::lookup_host(name.as_str()).await;
                let found = found.map_err(|error| Failure::job(format!("{name}: {error}")))?;
                peers.extend(found.map(PeerAddr::Ip));
            }
        }
    }
    Ok(peers)
}

/// Waits until the metadata is fetched, and shows the progress; while no peer is found, the `ways` to find them.
/// Returns what a `.torrent` file would say, trackers and web seeds of the link included, and the peers that
/// had it.
///
/// # Errors
/// When it cannot be fetched, or is interrupted.
pub async fn fetch(
    magnet: &Magnet,
    resolve: Resolve,
    ways: Ways,
) -> Result<(Metainfo, Vec<PeerAddr>), Failure> {
    let interrupted = pin!(process::interrupted()?);
    let mut progress = resolve.progress();
    let mut display = Display {
        live: Live::start(),
        line_due: Instant::now() + LINE_EVERY,
        ways,
    };
    let shown = async {
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        loop {
            tick.tick().await;
            display.show(&progress.borrow_and_update());
        }
    };
    let resolved = tokio::select! {
        resolved = resolve.wait() => resolved.map_err(Failure::job)?,
        () = interrupted => return Err(Failure::job("interrupted: no metadata yet")),
        () = shown => return Err(Failure::job("the display has ended")),
    };
    let mut metainfo = resolved.metainfo;
    metainfo.sources.trackers = magnet
        .trackers
        .iter()
        .map(|url| vec![url.clone()])
        .collect();
    metainfo.sources.web_seeds = magnet.web_seeds.clone();
    Ok((metainfo, resolved.peers))
}

struct Display {
    live: Option<Live>,
    line_due: Instant,
    ways: Ways,
}

impl Display {
    fn show(&mut self, progress: &ResolveProgress) {
        let line = format!("fetching metadata: {}", state(progress, &self.ways.first()));
        if let Some(live) = &mut self.live {
            live.draw(|_| vec![line]);
        } else if Instant::now() >= self.line_due {
            self.line_due += LINE_EVERY;
            errln!("{line}");
        }
    }
}

/// What is known so far, of peers that are searched for in these ways.
fn state(progress: &ResolveProgress, ways: &[&str]) -> String {
    let pieces = match progress.pieces {
        Some((received, all)) => format!(", {received} of {all} pieces"),
        None => String::new(),
    };
    match (progress.known, progress.connected) {
        (0, _) if ways.is_empty() => "no peer has connected yet".to_owned(),
        (0, _) => format!("no peer found yet (--find {})", ways.join(",")),
        (known, connected) => format!("{connected} of {known} peers have it{pieces}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_without_peers_says_what_it_waits_for() {
        let mut progress = ResolveProgress::default();
        let said = state(&progress, &["tracker", "local"]);
        assert_eq!(said, "no peer found yet (--find tracker,local)");
        assert_eq!(state(&progress, &[]), "no peer has connected yet");
        progress.known = 2;
        assert_eq!(state(&progress, &["local"]), "0 of 2 peers have it");
    }
}
