//! `hawser torrent trackers`: the trackers of a torrent of the daemon.

use hawser_client::Method;
use hawser_client::http::body::{Detail, Torrent, TorrentChange, Trackers, TrackersChange};

use super::{RemoteArgs, path, print};
use crate::cmd::process;
use crate::cmd::torrent::{Tier, tier};
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct TrackersArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    /// Add these trackers, each tried after those before it
    #[arg(long, value_name = "URL,...", value_parser = tier)]
    add: Vec<Tier>,
    /// Remove these trackers
    #[arg(long, value_name = "URL,...", value_parser = tier)]
    remove: Vec<Tier>,
    /// Have these trackers alone, or several that make a tier
    ///
    /// May be given several times: each is a tier, tried after those before it.
    #[arg(long, value_name = "URL,...", value_parser = tier, conflicts_with_all = ["add", "remove"])]
    set: Vec<Tier>,
    /// Announce it to its trackers as soon as they allow it
    #[arg(long)]
    reannounce: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl TrackersArgs {
    /// The change that is wanted, if one is.
    fn change(&self) -> Option<TorrentChange> {
        let all = |tiers: &[Tier]| tiers.iter().flat_map(|tier| tier.0.clone()).collect();
        let change = TrackersChange {
            add: all(&self.add),
            remove: all(&self.remove),
        };
        let trackers = match change == TrackersChange::default() {
            false => Trackers::Change(change),
            true if self.set.is_empty() => return None,
            true => Trackers::Tiers(self.set.iter().map(|tier| tier.0.clone()).collect()),
        };
        Some(TorrentChange {
            trackers: Some(trackers),
            ..TorrentChange::default()
        })
    }
}

/// Runs `hawser torrent trackers`.
pub fn run(args: &TrackersArgs) -> Result<(), Failure> {
    let detail: Detail = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let path = path(&remote, &args.torrent).await?;
        if let Some(change) = args.change() {
            let _: Torrent = remote.send(Method::PATCH, &path, &change).await?;
        }
        if args.reannounce {
            let announce = format!("{path}/announce");
            let _: Torrent = remote.ask(Method::POST, &announce).await?;
        }
        Ok::<_, Failure>(remote.ask(Method::GET, &path).await?)
    })?;
    args.remote.print(&detail, print::trackers)
}
