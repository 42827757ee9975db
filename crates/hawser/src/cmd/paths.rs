//! `hawser paths`: the paths to an AS.

use crate::out::outln;
use crate::{
    cli::PathsArgs,
    cmd,
    failure::{Doing, Failure},
    format,
};
use hawser_endhost::{Daemon, Endhost, Path};
use hawser_path::show::{Entry, Listing};
use std::fmt::Write;

/// Runs `hawser paths`.
pub fn run(args: PathsArgs) -> Result<(), Failure> {
    cmd::runtime()?.block_on(async {
        let daemon = Daemon::from_env().map_err(Failure::job)?;
        let host = Endhost::new(daemon).await.map_err(Failure::job)?;
        let paths = host.paths(args.destination).await.map_err(Failure::job)?;
        if args.json {
            let listing = Listing {
                local_isd_as: host.local_as(),
                destination: args.destination,
                paths: paths
                    .iter()
                    .map(|path| Entry::new(path.info(), path.next_hop()))
                    .collect(),
            };
            let text = serde_json::to_string_pretty(&listing).doing("writing JSON")?;
            outln!("{text}");
        } else {
            outln!("{}", table(&paths, args.extended).trim_end());
        }
        Ok(())
    })
}

/// The paths grouped by hops, as `scion showpaths` prints them.
fn table(paths: &[Path], extended: bool) -> String {
    let mut text = String::new();
    let mut hops = None;
    for (index, path) in paths.iter().enumerate() {
        let info = path.info();
        if hops != Some(info.hops()) {
            hops = Some(info.hops());
            let _ = writeln!(text, "{} hops:", info.hops());
        }
        let _ = writeln!(
            text,
            "[{index:>2}] {}  {}  MTU: {}{}",
            info.fingerprint().short(),
            drawing(path),
            info.metadata.mtu,
            path.next_hop()
                .map(|n| format!("  NextHop: {n}"))
                .unwrap_or_default(),
        );
        if extended {
            let entry = Entry::new(info, path.next_hop());
            let _ = writeln!(text, "     Fingerprint: {}", entry.fingerprint);
            let _ = writeln!(text, "     Expires: {}", entry.expiry);
            let latency = info
                .latency()
                .map_or_else(|| "not announced".to_owned(), format::millis);
            let _ = writeln!(text, "     Latency: {latency}");
            let least = info.metadata.bandwidth.iter().flatten().min();
            let bandwidth =
                least.map_or_else(|| "not announced".to_owned(), |&b| format::rate(b as f64));
            let _ = writeln!(text, "     Bandwidth: {bandwidth}");
            let _ = writeln!(text, "     Sequence: {}", entry.sequence);
            if entry.notes.iter().any(|n| !n.is_empty()) {
                let _ = writeln!(text, "     Notes: {}", entry.notes.join(", "));
            }
        }
    }
    text
}

/// `1-ff00:0:4 1>2 1-ff00:0:2 3>4 1-ff00:0:1`, as `scion showpaths` draws hops.
fn drawing(path: &Path) -> String {
    let interfaces = &path.info().interfaces;
    let Some(first) = interfaces.first() else {
        return format!("{} (inside the AS)", path.info().src);
    };
    let mut text = first.isd_as.to_string();
    for link in interfaces.chunks_exact(2) {
        let _ = write!(text, " {}>{} {}", link[0].id, link[1].id, link[1].isd_as);
    }
    text
}
