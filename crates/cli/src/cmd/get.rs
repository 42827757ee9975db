//! `hawser get`: download a torrent.

mod bars;
mod metadata;
mod report;
mod seeding;
pub mod selecting;
mod target;
mod transfer;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_path::{Policy, Select, SlotOptions};
use hawser_quic::Config;
use hawser_topology::parse_rate;
use hawser_torrent::{
    Download, DownloadOptions, FileOptions, Metainfo, PathOptions, PeerAddr, RateLimits, Resolve,
    SelectBy, Selection,
};

use self::report::{Job, OfferedPaths};
use self::seeding::SeedingArgs;
use self::selecting::SelectionArgs;
use self::target::{Known, Target, target};
use super::address::tcp;
use super::find::{FindArgs, Finding, Ways};
use super::network::{HostArgs, ListenArgs, Sockets, TransportArgs};
use super::quantity::{bytes, slots};
use super::select::PathArgs;
use super::storage::StorageArgs;
use super::{files, find, headings, policy, process};
use crate::failure::Failure;
use crate::out::{errln, plain};
use crate::output;

/// Keep-alive interval of a path while downloading: with a packet every quarter of a second, an
/// SCMP message about a dead link arrives well within a second.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

#[derive(clap::Args)]
pub struct GetArgs {
    /// The .torrent file, its URL, or a magnet link
    #[arg(value_parser = target())]
    pub torrent: Target,
    /// The folder to download into
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Overwrite files that are not the torrent's
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub storage: StorageArgs,
    #[command(flatten)]
    pub peers: PeerArgs,
    #[command(flatten)]
    pub seeding: SeedingArgs,
    #[command(flatten)]
    pub serving: ServingArgs,
    #[command(flatten)]
    pub paths: PathArgs,
    #[command(flatten)]
    pub choosing: ChoosingArgs,
    /// Report the reason for every path, used or not
    #[arg(long, short = 'v')]
    pub explain: bool,
    #[command(flatten)]
    pub transport: TransportArgs,
    /// Add the progress to the JSON object, about ten times a second
    #[arg(long, requires = "json", help_heading = headings::RARE, hide_short_help = true)]
    pub samples: bool,
    /// Print one JSON object at the end
    ///
    /// With --seed one when done, and one when seeding has ended.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub host: HostArgs,
}

/// How much is received and sent, and to how many peers at a time.
#[derive(clap::Args)]
pub struct ServingArgs {
    /// Most content received per second: 100mbit, 2.5gbit
    ///
    /// Over all paths, from all peers together.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub limit: Option<u64>,
    /// The same as --limit
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "limit", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub limit_down: Option<u64>,
    /// Most content sent per second, to all peers together
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub limit_up: Option<u64>,
    /// Most peers that are served at a time [default: 8]
    #[arg(long, value_name = "N", value_parser = slots(), help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub slots: Option<usize>,
}

/// How paths are chosen, beside their order.
#[derive(clap::Args)]
pub struct ChoosingArgs {
    /// The side that chooses among paths, also those to downloaders: uploader, which sees all its
    /// downloaders, or downloader [default: uploader, or downloader with --select]
    #[arg(long, value_name = "SIDE", help_heading = headings::PATHS, hide_short_help = true)]
    pub select_by: Option<SelectBy>,
    /// Let a path wait if it carries less than this percentage of what the best one carries; not
    /// with spread
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent, help_heading = headings::PATHS, hide_short_help = true)]
    pub min_weight: f64,
    /// Compare the paths' rates every MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000), help_heading = headings::PATHS, hide_short_help = true)]
    pub time_slot: u64,
    /// Do not try paths that share links with those in use
    #[arg(long, help_heading = headings::PATHS, hide_short_help = true)]
    pub no_sensing: bool,
}

/// Where the peers of a download come from.
#[derive(clap::Args)]
pub struct PeerArgs {
    /// A peer: 1-ff00:0:110,10.0.1.1:31000
    ///
    /// Or for example 10.0.1.1:6881 for one over plain IP. May be given several times.
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    pub peer: Vec<PeerAddr>,
    /// Let IP peers connect here, by plain TCP: 0.0.0.0:6881
    ///
    /// Port 0 is any that is free.
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Fetch from IP peers alone: do not look for a SCION network
    #[arg(long, conflicts_with_all = ["listen", "sciond", "config_dir", "bootstrap", "local"], help_heading = headings::RARE, hide_short_help = true)]
    pub no_scion: bool,
    #[command(flatten)]
    pub find: FindArgs,
}

impl GetArgs {
    /// Whether peers can be told an address at which this side listens.
    fn listens(&self) -> bool {
        self.peers.tcp.is_some() || self.peers.listen.listen.is_some()
    }

    /// Whether peers are to come that are not known yet. Without, a download from web seeds alone ends with
    /// these.
    fn awaits(&self, peers: &[PeerAddr], ways: Ways) -> bool {
        peers.is_empty() && self.listens() || ways.brings_first()
    }

    /// The options of a download of everything from `peers`, with a policy for its paths and the strategies to choose
    /// them.
    fn options(
        &self,
        peers: &[PeerAddr],
        ways: Ways,
        select: Select,
        policy: Option<Policy>,
    ) -> DownloadOptions {
        let slots = SlotOptions {
            min_weight: self.choosing.min_weight / 100.0,
            time_slot: Duration::from_millis(self.choosing.time_slot),
            ..SlotOptions::default()
        };
        // By default the downloader chooses paths if a strategy is given.
        let default = match self.paths.select.select {
            Some(_) => SelectBy::Downloader,
            None => SelectBy::Uploader,
        };
        DownloadOptions {
            select_by: self.choosing.select_by.unwrap_or(default),
            paths: PathOptions {
                select,
                subflows: self.paths.select.most(),
                policy,
                slots,
                sensing: !self.choosing.no_sensing,
                ..PathOptions::default()
            },
            storage: FileOptions {
                overwrite: self.force,
                ..self.storage.options()
            },
            seed: self.seeding.limits(),
            slots: self.serving.slots,
            limits: RateLimits {
                upload: self.serving.limit_up.map(bytes),
                download: self.serving.limit.or(self.serving.limit_down).map(bytes),
            },
            // Nobody can say when a peer will come that is not known yet.
            give_up_after: match self.awaits(peers, ways) {
                true => Duration::MAX,
                false => DownloadOptions::default().give_up_after,
            },
            awaits_peers: self.listens(),
            finds_peers: ways.brings_first(),
            exchanges_peers: ways.pex,
            files: Selection::all(),
            ..DownloadOptions::default()
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("'{text}' is no percentage: give a number from 0 to 100"))
}

/// Runs `hawser get`.
pub fn run(args: GetArgs) -> Result<(), Failure> {
    refuse_scion_peers(&args.peers)?;
    let known = args.torrent.read()?;
    let sought = known.sought();
    let ways = args.peers.find.ways(&sought)?;
    refuse_no_peers(&args, &known, ways)?;
    if let Known::Torrent(metainfo) = &known {
        let files = args.selection.selection(metainfo)?;
        refuse_own_inputs(&args, metainfo, &files)?;
    }
    let select = args.paths.select.read()?;
    let policy = policy::read(&args.paths.policy)?;
    files::check_output_folder("-o", &args.output)?;
    process::runtime()?.block_on(async {
        let mut peers = args.peers.peer.clone();
        if let Known::Link(magnet) = known {
            let of_link = metadata::peers(magnet).await?.into_iter();
            peers.extend(of_link.filter(|peer| peer.ip().is_some() || !args.peers.no_scion));
        }
        let (sockets, offered) = open(&args, &peers, ways).await?;
        let options = args.options(&peers, ways, select, policy);
        let dht = args.peers.find.open_dht(ways, &sought, &sockets)?;
        let mut finding = Finding::begin(ways, &sought, &sockets, dht)?;
        let ended = fetch(
            &args,
            known,
            peers,
            options,
            &sockets,
            offered,
            (ways, &mut finding),
        )
        .await;
        finding.stop().await;
        sockets.close().await;
        ended
    })
}

/// Downloads, after the metadata is there, from `peers` and those that are found.
async fn fetch(
    args: &GetArgs,
    known: Known<'_>,
    mut peers: Vec<PeerAddr>,
    mut options: DownloadOptions,
    sockets: &Sockets,
    offered: OfferedPaths,
    (ways, finding): (Ways, &mut Finding),
) -> Result<(), Failure> {
    let network = sockets.network.clone();
    let metainfo = match known {
        Known::Torrent(metainfo) => *metainfo,
        Known::Link(magnet) => {
            let (hashes, give_up) = (magnet.info_hashes, options.give_up_after);
            let resolve = Resolve::start(hashes, peers.clone(), network.clone(), give_up);
            let found = resolve.found_peers();
            let (metainfo, had) = tokio::select! {
                fetched = metadata::fetch(magnet, resolve, ways) => fetched?,
                never = finding.feed(Some(&found)) => match never {},
            };
            peers.extend(had.into_iter().filter(|peer| {
                let is_barred = metainfo.private && finding.is_untracked(*peer);
                !is_barred
            }));
            finding.learn(metainfo.private);
            if metainfo.private && metainfo.sources.trackers.is_empty() {
                if peers.is_empty() {
                    let text = "the torrent is private: its peers come from trackers alone (BEP \
                                27), and the link names none";
                    return Err(Failure::job(text));
                }
                // No others will be found.
                options.give_up_after = DownloadOptions::default().give_up_after;
            }
            metainfo
        }
    };
    options.files = args.selection.selection(&metainfo)?;
    refuse_own_inputs(args, &metainfo, &options.files)?;
    let job = Job {
        name: metainfo.name.clone(),
        info_hash: metainfo.info_hash.to_string(),
        bytes: metainfo.pieces.total,
        addresses: sockets.addresses,
        seeds: args.seeding.limits().is_some(),
        verbose: args.explain,
        json: args.json,
        samples: args.samples,
    };
    // Before anybody can know that it runs.
    let interrupted = process::interrupted()?;
    if args.listens() {
        errln!("listening {}", job.addresses);
    }
    let download = Download::start(metainfo, args.output.clone(), peers, network, options);
    let (shared, found) = (download.policy(), download.found_peers());
    finding.follow(download.progress(), find::of_download);
    let fed = async {
        finding.give_kept(&found).await;
        finding.feed(Some(&found)).await
    };
    tokio::select! {
        ended = transfer::run(&job, download, offered, interrupted) => ended,
        never = fed => match never {},
        never = policy::follow(&args.paths.policy, &shared) => match never {},
    }
}

/// The sockets of a download, and the paths to its SCION peers. With IP peers alone no SCION
/// network is joined, unless `--listen` is given; where trackers may name SCION peers, one is joined if
/// there is one.
async fn open(
    args: &GetArgs,
    peers: &[PeerAddr],
    ways: Ways,
) -> Result<(Sockets, OfferedPaths), Failure> {
    let needs_scion = args.peers.listen.listen.is_some() || args.peers.find.scion_node().is_some();
    let host = match needs_scion || peers.iter().any(|peer| peer.scion().is_some()) {
        _ if args.peers.no_scion => None,
        true => Some(args.host.join().await?),
        false if ways.brings_first() => args.host.join_if_any().await?,
        false => None,
    };
    let offered = OfferedPaths::new(host.clone(), peers);
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        congestion: args.transport.congestion.unwrap_or_default(),
        ..Config::default()
    };
    let (listen, tcp) = (args.peers.listen.listen, args.peers.tcp);
    let sockets = Sockets::open(host, config, listen, tcp, args.transport.transports()).await?;
    let sockets = sockets.with_encryption(args.transport.encryption);
    Ok((sockets, offered))
}

/// Refuses peers and nodes in a SCION network where none is to be joined.
fn refuse_scion_peers(args: &PeerArgs) -> Result<(), Failure> {
    let scion_peer = args.peer.iter().find(|peer| peer.scion().is_some());
    let node = args
        .find
        .scion_node()
        .map(|node| ("--dht-node", node.to_string()));
    let named = scion_peer.map(|peer| ("--peer", peer.to_string())).or(node);
    match named.filter(|_| args.no_scion) {
        Some((flag, named)) => Err(Failure::usage(format!(
            "{flag} {named} is in a SCION network, and --no-scion joins none: leave one of them out"
        ))),
        None => Ok(()),
    }
}

/// Refuses a download that has no peer to fetch from, and to which none can connect.
fn refuse_no_peers(args: &GetArgs, known: &Known<'_>, ways: Ways) -> Result<(), Failure> {
    let links_peers = matches!(known, Known::Link(magnet) if !magnet.peers.is_empty());
    if !args.peers.peer.is_empty() || links_peers || args.listens() || ways.brings_first() {
        return Ok(());
    }
    let sources = match known {
        Known::Torrent(metainfo) if !metainfo.sources.web_seeds.is_empty() => return Ok(()),
        Known::Link(magnet) if !magnet.web_seeds.is_empty() => {
            "the web seeds of a link have the content, but not the metadata: "
        }
        _ => "",
    };
    let name = match args.torrent.file() {
        Some(file) => format!("{}: ", file.display()),
        None => String::new(),
    };
    Err(Failure::usage(format!(
        "{name}{sources}name at least one peer with --peer, for example --peer \
         1-ff00:0:110,10.0.1.1:31000 or --peer 10.0.1.1:6881, or have peers found in the DHT with \
         --find dht, or let them connect with --tcp 0.0.0.0:6881 or --listen"
    )))
}

/// Refuses to overwrite the files that this command reads, even with `--force`.
fn refuse_own_inputs(
    args: &GetArgs,
    metainfo: &Metainfo,
    selected: &Selection,
) -> Result<(), Failure> {
    let carbon = args.paths.select.carbon.as_deref();
    let (torrent, policy) = (args.torrent.file(), policy::file(&args.paths.policy));
    let inputs = [torrent, carbon, policy];
    let found = inputs.into_iter().flatten();
    let found = found.filter_map(|input| Some((input, std::fs::metadata(input).ok()?)));
    let found: Vec<_> = found.collect();
    let files = metainfo.files.iter().enumerate();
    let written = files.filter(|(index, file)| !file.padding && selected.has(*index));
    for (_, file) in written {
        let path = args.output.join(&file.path);
        if let Some((input, _)) = found.iter().find(|(_, it)| output::is_same(it, &path)) {
            return Err(Failure::usage(format!(
                "{} would be written over {}, which is read: choose another folder with -o",
                plain(&path.display().to_string()),
                input.display()
            )));
        }
    }
    Ok(())
}
