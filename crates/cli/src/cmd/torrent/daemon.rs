//! `hawser torrent add`, `list` and the others, of which each is a request to the daemon of this host.

mod files;
mod group;
mod print;
mod trackers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ArgGroup;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use hawser_client::http::body::{
    AddedTorrent, Limit, LimitWord, NewTorrent, Torrent, TorrentChange, Torrents,
};
use hawser_client::{
    BandwidthPriority, MAX_PEERS, Method, Remote, RemoteError, is_url, parse_hash,
};
use hawser_torrent::PeerAddr;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

pub use self::files::{FilesArgs, run as files};
pub use self::group::{GroupArgs, run as group};
pub use self::trackers::{TrackersArgs, run as trackers};
use crate::cmd::daemon::{ratio, state_to_find};
use crate::cmd::files::{is_magnet, metainfo};
use crate::cmd::get::selecting::SelectionArgs;
use crate::cmd::process;
use crate::cmd::quantity::{RateArg, long_duration, rate_or_none};
use crate::cmd::wait::WaitArgs;
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// Where the torrents of the API are.
const TORRENTS: &str = "/api/v1/torrents";

/// Which daemon is asked, and how its answer is printed.
#[derive(clap::Args)]
pub struct RemoteArgs {
    /// The folder of the daemon's state [default: as of hawser daemon]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Time between looks for a daemon that is waited for.
const RETRY: Duration = Duration::from_millis(100);

impl RemoteArgs {
    /// The daemon, which is waited for if that is wanted.
    async fn find(&self) -> Result<Remote, Failure> {
        let state = state_to_find(self.state.as_deref())?;
        let (began, time) = (Instant::now(), self.wait.time());
        loop {
            let found = Remote::connect(&state).await;
            match found {
                Err(RemoteError::NoDaemon(_)) if began.elapsed() < time => sleep(RETRY).await,
                found => return Ok(found?),
            }
        }
    }

    /// Prints a report for programs, or has it printed for people.
    fn print<T: Serialize>(&self, report: &T, human: impl FnOnce(&T)) -> Result<(), Failure> {
        match self.json {
            true => crate::cmd::print::json(report),
            false => {
                human(report);
                Ok(())
            }
        }
    }
}

#[derive(clap::Args)]
pub struct AddArgs {
    /// The .torrent file, its URL, or a magnet link
    ///
    /// The daemon fetches what is at a URL of http:// or https://.
    #[arg(value_parser = source())]
    torrent: Source,
    /// The folder for its content [default: that of the daemon]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Leave it stopped until it is started
    #[arg(long)]
    stopped: bool,
    /// Give it this label. May be given several times
    #[arg(long, value_name = "TEXT")]
    label: Vec<String>,
    /// Ask this peer, too: 1-ff00:0:110,10.0.1.1:31000 or 10.0.1.1:6881. May be given several times
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    peer: Vec<PeerAddr>,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// What a torrent is added from.
#[derive(Debug, Clone)]
enum Source {
    File(PathBuf),
    Magnet(String),
    Url(String),
}

fn source() -> impl TypedValueParser<Value = Source> {
    OsStringValueParser::new().map(|text| match text.to_str() {
        Some(link) if is_magnet(link) => Source::Magnet(link.trim().to_owned()),
        Some(url) if is_url(url) => Source::Url(url.to_owned()),
        _ => Source::File(text.into()),
    })
}

#[derive(clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A torrent that is named, and nothing else.
#[derive(clap::Args)]
pub struct OneArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(clap::Args)]
pub struct RemoveArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    /// Delete its content, too
    #[arg(long)]
    content: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(clap::Args)]
#[command(
    override_usage = "hawser torrent limit [OPTIONS] <TORRENT>",
    group = ArgGroup::new("limits").required(true).multiple(true).args([
        "seed_ratio", "seed_time", "limit_down", "limit_up", "max_peers", "in_group", "exempt", "not_exempt",
        "priority",
    ]),
)]
pub struct LimitArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    /// Seed until RATIO times its size was sent; none for no limit, default for that of the daemon
    #[arg(long, value_name = "RATIO", value_parser = ratio_limit)]
    seed_ratio: Option<Limit>,
    /// Seed for this time: 30m; none for no limit, default for that of the daemon
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    seed_time: Option<Limit>,
    /// Seed until nothing was sent for this time; none for no limit, default for that of the daemon
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    seed_idle: Option<Limit>,
    /// Receive at most this much content per second, or none
    ///
    /// Within the limit of all torrents; as 10mbit.
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    limit_down: Option<RateArg>,
    /// Send at most this much content per second, or none
    ///
    /// Within the limit of all torrents; as 10mbit.
    #[arg(long, value_name = "RATE", value_parser = rate_or_none)]
    limit_up: Option<RateArg>,
    /// Connect to at most this many peers, none or default
    ///
    /// None is for no limit, default for that of the daemon.
    #[arg(long, value_name = "N", value_parser = peer_limit)]
    max_peers: Option<Limit>,
    /// Have it in this bandwidth group, whose limits hold for its torrents together, or in none
    #[arg(long, value_name = "GROUP")]
    in_group: Option<String>,
    /// Let no limit of its group or of all torrents hold
    #[arg(long, conflicts_with = "not_exempt")]
    exempt: bool,
    /// Let these limits hold for it, too
    #[arg(long)]
    not_exempt: bool,
    /// Give it more or less of these limits than others get
    #[arg(long, value_name = "LEVEL", value_parser = priority::<BandwidthPriority>())]
    priority: Option<BandwidthPriority>,
    #[command(flatten)]
    remote: RemoteArgs,
}

fn word(text: &str) -> Option<Limit> {
    match text {
        "none" => Some(Limit::Word(LimitWord::Unlimited)),
        "default" => Some(Limit::Word(LimitWord::Default)),
        _ => None,
    }
}

fn ratio_limit(text: &str) -> Result<Limit, String> {
    word(text).map_or_else(|| ratio(text).map(Limit::Number), Ok)
}

fn time_limit(text: &str) -> Result<Limit, String> {
    let seconds = |time: Duration| Limit::Number(time.as_secs() as f64);
    word(text).map_or_else(|| long_duration(text).map(seconds), Ok)
}

fn peer_limit(text: &str) -> Result<Limit, String> {
    let wrong =
        || format!("{text:?} is not a number of peers: write one from 0 up, none, or default");
    let number = || text.parse::<u32>().map_err(|_| wrong());
    word(text).map_or_else(|| number().map(|number| Limit::Number(number.into())), Ok)
}

#[derive(clap::Args)]
pub struct MoveArgs {
    /// The torrent: its info-hash or the beginning of that, or its name
    torrent: String,
    /// The folder that its content is moved to, in the same file system
    folder: PathBuf,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A request about a torrent that has no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Start,
    Stop,
    Verify,
}

impl Action {
    /// The end of its path in the API.
    fn path(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Verify => "verify",
        }
    }
}

/// Runs `hawser torrent add`.
pub fn add(args: &AddArgs) -> Result<(), Failure> {
    let mut new = NewTorrent {
        stopped: args.stopped.then_some(true),
        sequential: args.selection.sequential,
        labels: args.label.clone(),
        peers: args.peer.iter().map(ToString::to_string).collect(),
        ..NewTorrent::default()
    };
    if new.peers.len() > MAX_PEERS {
        return Err(Failure::usage(format!("--peer: name at most {MAX_PEERS}")));
    }
    match &args.torrent {
        Source::Magnet(_) | Source::Url(_) if args.selection.is_partial() => {
            return Err(Failure::usage(
                "--files and --exclude: the files of a magnet link or URL are not known yet: add it without, and \
                 choose with `hawser torrent files` once it has its metadata",
            ));
        }
        Source::Url(url) => new.url = Some(url.clone()),
        Source::Magnet(link) => new.magnet = Some(link.clone()),
        Source::File(file) => {
            // The daemon would refuse a wrong one; here its file can be named.
            let metainfo = metainfo(file)?;
            new.files = files::of(&args.selection, &metainfo)?;
            let bytes = std::fs::read(file).doing(file.display())?;
            new.set_metainfo(&bytes);
        }
    }
    if let Some(output) = &args.output {
        let folder = std::path::absolute(output).doing(output.display())?;
        let folder = folder.to_str().ok_or_else(|| {
            Failure::usage(format!(
                "{}: the name of the folder is not UTF-8",
                output.display()
            ))
        })?;
        new.folder = Some(folder.to_owned());
    }
    let added: AddedTorrent = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        Ok::<_, Failure>(remote.send(Method::POST, TORRENTS, &new).await?)
    })?;
    if let Some(merged) = added.merged {
        print::merged(&added.torrent, merged);
    }
    args.remote
        .print(&added, |added| print::status(&added.torrent))
}

/// Runs `hawser torrent list`.
pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let torrents: Torrents = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        Ok::<_, Failure>(remote.ask(Method::GET, TORRENTS).await?)
    })?;
    args.remote
        .print(&torrents, |torrents| print::table(&torrents.torrents))
}

/// Runs `hawser torrent wait`.
pub fn wait(args: &OneArgs) -> Result<(), Failure> {
    let torrent = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let path = path(&remote, &args.torrent).await?;
        loop {
            let torrent: Torrent = remote.ask(Method::GET, &format!("{path}/settled")).await?;
            // The daemon answers after 30 s even if the torrent has not settled.
            let is_settled =
                ["seeding", "stopped", "finished", "failed"].contains(&&*torrent.status);
            if is_settled || torrent.completed.is_some() {
                return Ok::<_, Failure>(torrent);
            }
        }
    })?;
    args.remote.print(&torrent, print::status)?;
    match (torrent.completed, torrent.error) {
        (Some(_), _) => Ok(()),
        (None, Some(error)) => Err(Failure::job(error)),
        (None, None) => Err(Failure::job("it was stopped before it was complete")),
    }
}

/// Runs `hawser torrent start`, `stop` or `verify`.
pub fn act(args: &OneArgs, action: Action) -> Result<(), Failure> {
    let torrent: Torrent = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let path = path(&remote, &args.torrent).await?;
        let path = format!("{path}/{}", action.path());
        Ok::<_, Failure>(remote.ask(Method::POST, &path).await?)
    })?;
    args.remote.print(&torrent, print::status)
}

/// Runs `hawser torrent remove`.
pub fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let path = process::small_runtime()?.block_on(async {
        let remote = args.remote.find().await?;
        let path = path(&remote, &args.torrent).await?;
        let query = format!("{path}?content={}", args.content);
        remote.order(Method::DELETE, &query).await?;
        Ok::<_, Failure>(path)
    })?;
    let info_hash = path.rsplit('/').next().unwrap_or_default();
    let report = serde_json::json!({ "info_hash": info_hash, "removed_content": args.content });
    args.remote.print(&report, |_| match args.content {
        true => outln!("{info_hash}: removed with its content"),
        false => outln!("{info_hash}: removed; its content stays"),
    })
}

/// Parses the name of a priority.
fn priority<P: DeserializeOwned + Clone + Send + Sync + 'static>()
-> impl TypedValueParser<Value = P> {
    PossibleValuesParser::new(["low", "normal", "high"]).try_map(|text| {
        let name = serde::de::value::StringDeserializer::<serde::de::value::Error>::new(text);
        P::deserialize(name)
    })
}

/// Runs `hawser torrent limit`.
pub fn limit(args: &LimitArgs) -> Result<(), Failure> {
    let change = TorrentChange {
        ratio: args.seed_ratio,
        seconds: args.seed_time,
        idle_seconds: args.seed_idle,
        download_rate: args.limit_down.map(|rate| rate.0.into()),
        upload_rate: args.limit_up.map(|rate| rate.0.into()),
        max_peers: args.max_peers,
        group: args.in_group.clone().map(|name| match &*name {
            "none" => String::new(),
            _ => name,
        }),
        exempt: group::exempt(args.exempt, args.not_exempt),
        priority: args.priority,
        ..TorrentChange::default()
    };
    apply(&args.torrent, &change, &args.remote)
}

/// Runs `hawser torrent move`.
pub fn relocate(args: &MoveArgs) -> Result<(), Failure> {
    let folder = std::path::absolute(&args.folder).doing(args.folder.display())?;
    let text = folder.to_str().ok_or_else(|| {
        Failure::usage(format!(
            "{}: the name of the folder is not UTF-8",
            folder.display()
        ))
    })?;
    let change = TorrentChange {
        folder: Some(text.to_owned()),
        ..TorrentChange::default()
    };
    apply(&args.torrent, &change, &args.remote)
}

/// Changes a torrent and prints it.
fn apply(torrent: &str, change: &TorrentChange, args: &RemoteArgs) -> Result<(), Failure> {
    let torrent: Torrent = process::small_runtime()?.block_on(async {
        let remote = args.find().await?;
        let path = path(&remote, torrent).await?;
        Ok::<_, Failure>(remote.send(Method::PATCH, &path, change).await?)
    })?;
    args.print(&torrent, print::status)
}

/// The path in the API of the torrent that a user names.
async fn path(remote: &Remote, named: &str) -> Result<String, Failure> {
    let hash = match parse_hash(named) {
        Some(hash) => hash.to_string(),
        None => {
            let torrents: Torrents = remote.ask(Method::GET, TORRENTS).await?;
            find(&torrents.torrents, named)
                .map_err(Failure::job)?
                .info_hash
                .clone()
        }
    };
    Ok(format!("{TORRENTS}/{hash}"))
}

/// The torrent with this name, or whose info-hash begins like this.
fn find<'a>(torrents: &'a [Torrent], named: &str) -> Result<&'a Torrent, String> {
    let lower = named.to_ascii_lowercase();
    let is_it = |torrent: &&Torrent| {
        torrent.name == named || (!lower.is_empty() && torrent.info_hash.starts_with(&lower))
    };
    let mut found = torrents.iter().filter(is_it);
    match (found.next(), found.count()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(format!(
            "there is no torrent {named:?}: `hawser torrent list` has those that are there"
        )),
        (Some(_), more) => Err(format!(
            "{named:?} may be {} torrents: write more of the info-hash",
            more + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torrent(info_hash: &str, name: &str) -> Torrent {
        let object = serde_json::json!({
            "info_hash": info_hash, "name": name, "status": "stopped", "position": 0, "labels": [],
            "folder": "/", "content": {"verified_bytes": 0}, "added": 0,
            "traffic": {"download_rate": 0, "upload_rate": 0, "downloaded_bytes": 0, "uploaded_bytes": 0,
                "ratio": 0.0, "seeded_seconds": 0, "peers": 0},
            "limits": {"ratio": "default", "seconds": 60.0, "download_rate": 1000, "upload_rate": "unlimited",
                "max_peers": "default"},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_torrent_is_named_by_its_hash_or_name() {
        let all = [torrent("ab01", "one"), torrent("ab02", "two")];
        assert_eq!(find(&all, "AB01").unwrap().name, "one");
        assert_eq!(find(&all, "two").unwrap().info_hash, "ab02");
        assert!(find(&all, "ab").unwrap_err().contains("2 torrents"));
        for unknown in ["", "cd", "One"] {
            assert!(
                find(&all, unknown).unwrap_err().contains("no torrent"),
                "{unknown}"
            );
        }
    }

    #[test]
    fn limits_are_numbers_or_words() {
        assert_eq!(ratio_limit("1.5"), Ok(Limit::Number(1.5)));
        assert_eq!(time_limit("30m"), Ok(Limit::Number(1800.0)));
        assert_eq!(time_limit("none"), Ok(Limit::Word(LimitWord::Unlimited)));
        assert_eq!(ratio_limit("default"), Ok(Limit::Word(LimitWord::Default)));
        assert_eq!(peer_limit("30"), Ok(Limit::Number(30.0)));
        assert_eq!(peer_limit("default"), Ok(Limit::Word(LimitWord::Default)));
        assert!(peer_limit("-1").is_err() && peer_limit("1.5").is_err());
        assert!(ratio_limit("-1").is_err() && time_limit("x").is_err());
    }
}
