//! `hawser seed`: serves a file or folder.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_endhost::{BootstrapError, Endhost};
use hawser_path::{Policy, Select};
use hawser_quic::Config;
use hawser_topology::parse_rate;
use hawser_torrent::{
    PathOptions, PeerAddr, RateLimits, Seed, SeedOptions, SeedProgress, SelectBy,
};

use super::address::tcp;
use super::find::{self, Dht, FindArgs, Finding, Sought, Ways};
use super::network::{HostArgs, ListenArgs, Sockets, TransportArgs};
use super::policy::{self, PolicyArgs};
use super::quantity::{bytes, slots};
use super::reported::Reported;
use super::select::{ranking, ranking_help, with_carbon};
use super::{files, headings, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};
use crate::paint::Paint;
use crate::screen::{Live, Work};

#[derive(clap::Args)]
pub struct SeedArgs {
    /// The .torrent file
    pub torrent: PathBuf,
    /// The file or folder that it describes
    pub path: PathBuf,
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Serve IP peers too, by plain TCP at this address, for example 0.0.0.0:6881; port 0 is any
    /// that is free. Where no SCION network is found, IP peers are served alone, unless a flag that
    /// concerns SCION is given
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    /// Serve IP peers alone: do not look for a SCION network
    #[arg(long, requires = "tcp", conflicts_with_all = SCION_FLAGS, help_heading = headings::RARE, hide_short_help = true)]
    pub no_scion: bool,
    #[command(flatten)]
    pub choosing: ChoosingArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub serving: ServingArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub find: FindArgs,
    /// Report the reason for every path, used or not
    #[arg(long, short = 'v')]
    pub explain: bool,
    /// Print JSON: one object when listening, and with --explain one whenever the decision on
    /// a path, or its congestion control, changes
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub host: HostArgs,
}

/// How the paths of uploads are chosen.
#[derive(clap::Args)]
pub struct ChoosingArgs {
    /// The side that chooses the paths of uploads: uploader, this side, which sees all its
    /// downloaders, or downloader [default: uploader]
    #[arg(long, value_name = "SIDE", help_heading = headings::PATHS, hide_short_help = true)]
    pub select_by: Option<SelectBy>,
    #[arg(
        long,
        value_name = "STRATEGY,...",
        value_parser = ranking,
        help = ranking_help(),
        help_heading = headings::PATHS,
        hide_short_help = true
    )]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a file as `hawser get --help` describes it
    #[arg(long, value_name = "FILE", help_heading = headings::PATHS, hide_short_help = true)]
    pub carbon: Option<PathBuf>,
    /// Do not try paths that share links with those assigned
    #[arg(long, help_heading = headings::PATHS, hide_short_help = true)]
    pub no_sensing: bool,
}

/// How much is sent, and to how many peers at a time.
#[derive(clap::Args)]
pub struct ServingArgs {
    /// Most content sent per second: 100mbit, 2.5gbit
    ///
    /// Over all paths, to all peers together.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, visible_alias = "limit-up")]
    pub limit: Option<u64>,
    /// Reveal one piece at a time to each peer (BEP 16): for the only seeder of new content
    ///
    /// It sends each piece about once, and peers pass them on. They fetch more slowly, and those that
    /// pass nothing on get little.
    #[arg(long, help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub super_seeding: bool,
    /// Most peers that are served at a time [default: 8]
    #[arg(long, value_name = "N", value_parser = slots(), help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub slots: Option<usize>,
}

/// Flags of a seeder that need a SCION network, by their names in clap.
const SCION_FLAGS: [&str; 13] = [
    "sciond",
    "config_dir",
    "bootstrap",
    "local",
    "listen",
    "policy",
    "acl",
    "sequence",
    "select_by",
    "select",
    "carbon",
    "no_sensing",
    "congestion",
];

impl SeedArgs {
    /// The first given flag that needs a SCION network.
    pub fn scion_flag(&self) -> Option<String> {
        // In the order of `SCION_FLAGS`.
        let given = [
            self.host.sciond.is_some(),
            self.host.config_dir.is_some(),
            self.host.bootstrap.is_some(),
            self.host.local.is_some(),
            self.listen.listen.is_some(),
            self.policy.policy.is_some(),
            !self.policy.acl.is_empty(),
            self.policy.sequence.is_some(),
            self.choosing.select_by.is_some(),
            self.choosing.select.is_some(),
            self.choosing.carbon.is_some(),
            self.choosing.no_sensing,
            self.transport.congestion.is_some(),
        ];
        let mut flags = SCION_FLAGS.iter().zip(given);
        let (flag, _) = flags.find(|(_, given)| *given)?;
        Some(format!("--{}", flag.replace('_', "-")))
    }

    /// The options of the seeder, with a policy for its paths and the strategies to rank them.
    fn options(&self, ways: Ways, select: Select, policy: Option<Policy>) -> SeedOptions {
        SeedOptions {
            select_by: self.choosing.select_by.unwrap_or(SelectBy::Uploader),
            paths: PathOptions {
                select,
                policy,
                sensing: !self.choosing.no_sensing,
                ..PathOptions::default()
            },
            exchanges_peers: ways.pex,
            slots: self.serving.slots,
            dials_found: ways.any(),
            super_seeding: self.serving.super_seeding,
            limits: RateLimits {
                upload: self.serving.limit.map(bytes),
                download: None,
            },
        }
    }
}

/// Runs `hawser seed` until interrupted.
pub fn run(args: SeedArgs) -> Result<(), Failure> {
    let metainfo = files::metainfo(&args.torrent)?;
    let sought = Sought::seeded(&metainfo);
    let ways = args.find.ways(&sought)?;
    let select = args
        .choosing
        .select
        .clone()
        .unwrap_or_else(Select::shortest);
    let select = with_carbon(select, args.choosing.carbon.as_deref())?;
    let policy = policy::read(&args.policy)?;
    files::check_input(&args.path)?;
    process::runtime()?.block_on(async {
        let (host, no_scion) = match scion(&args).await? {
            Ok(host) => (Some(host), None),
            Err(why) => (None, Some(why)),
        };
        let config = Config {
            congestion: args.transport.congestion.unwrap_or_default(),
            ..Config::default()
        };
        let sockets = Sockets::open(
            host,
            config,
            args.listen.listen,
            args.tcp,
            args.transport.transports(),
        )
        .await?;
        let sockets = sockets.with_encryption(args.transport.encryption);
        let dht = args.find.open_dht(ways, &sought, &sockets)?;
        let nodes = dht.as_ref().map_or(Vec::new(), Dht::local_addrs);
        let nodes: Vec<String> = nodes.iter().map(PeerAddr::to_string).collect();

        let mut work = Work::begin("checking");
        let checked = move |done, total| work.show(done, total);
        let name = metainfo.name.clone();
        let size = metainfo.pieces.total;
        let info_hash = metainfo.info_hash.to_string();
        let options = args.options(ways, select, policy);
        let network = sockets.network.clone();
        let seed = Seed::start(metainfo, args.path, network, options, checked).await?;

        let addresses = sockets.addresses;
        let interrupted = process::interrupted()?;
        if let Some(why) = no_scion.as_ref().filter(|_| !args.no_scion) {
            errln!("no SCION here, IP peers are served alone: {why}");
        }
        if args.json {
            let mut object = serde_json::json!({
                "name": name,
                "info_hash": info_hash,
                "bytes": size,
                "listening": addresses.scion.map(|address| address.to_string()),
            });
            if let Some(tcp) = addresses.tcp {
                object["listening_tcp"] = tcp.to_string().into();
            }
            if let Some(why) = no_scion {
                object["no_scion"] = why.into();
            }
            if !nodes.is_empty() {
                object["dht"] = nodes.into();
            }
            outln!("{object}");
        } else {
            let (name, size) = (plain(&name), format::bytes(size));
            outln!("seeding {name} ({size}) {addresses}");
            if !nodes.is_empty() {
                outln!("nodes of the DHT at {}", nodes.join(", "));
            }
        }

        let (mut live, paint) = (Live::start(), Paint::stderr());
        let prints = args.explain && (args.json || !std::io::stderr().is_terminal());
        let mut reported = Reported::default();
        let (mut progress, shared) = (seed.progress(), seed.policy());
        let shown = async {
            while progress.changed().await.is_ok() {
                let progress = progress.borrow_and_update();
                reported.report(&progress.changed, args.json);
                if prints {
                    report(&mut reported, &progress, args.json);
                }
                if let Some(live) = &mut live {
                    live.draw(|_| lines(&progress, args.explain, paint));
                }
            }
            std::future::pending::<()>().await
        };
        let mut finding = Finding::begin(ways, &sought, &sockets, dht)?;
        finding.follow(seed.progress(), find::of_seeder);
        let found = seed.found_peers();
        let ended = tokio::select! {
            ended = seed.wait() => ended.map_err(Failure::job),
            () = interrupted => Ok(()),
            () = shown => Ok(()),
            never = finding.feed(Some(&found)) => match never {},
            never = policy::follow(&args.policy, &shared) => match never {},
        };
        finding.stop().await;
        drop(live);
        sockets.close().await;
        ended
    })
}

/// This host in its SCION network, or the reason why only IP peers are served. A source of paths
/// that was named or found must work; otherwise there is no SCION network.
async fn scion(args: &SeedArgs) -> Result<Result<Endhost, String>, Failure> {
    if args.no_scion {
        return Ok(Err("left out by --no-scion".to_owned()));
    }
    let error = match Endhost::bootstrap(&args.host.bootstrap().await?).await {
        Ok(host) => return Ok(Ok(host)),
        Err(error) => error,
    };
    Err(Failure::job(match (args.tcp, args.scion_flag(), &error) {
        (None, Some(_), _) => error.to_string(),
        (None, None, BootstrapError::Nothing { .. }) => {
            format!("{error}; or serve IP peers alone: --tcp 0.0.0.0:6881")
        }
        (None, None, _) => {
            format!("{error}; or serve IP peers alone: --tcp 0.0.0.0:6881 --no-scion")
        }
        (Some(_), Some(flag), BootstrapError::Nothing { .. }) => {
            format!("{error}; or leave {flag} out, which asks for one, to serve IP peers alone")
        }
        (Some(_), None, BootstrapError::Nothing { .. }) => return Ok(Err(error.to_string())),
        (Some(_), _, _) => format!("{error}; or serve IP peers alone: --no-scion"),
    }))
}

/// Prints the decision on each path for which it is new, and its congestion control.
fn report(reported: &mut Reported, progress: &SeedProgress, json: bool) {
    let used = progress.peers.iter();
    let used = used.filter_map(|one| Some((one.peer, one.fingerprint, one.decision.as_ref()?)));
    let left = progress.left.iter();
    let left = left.map(|one| (one.peer, one.fingerprint, &one.decision));
    for (peer, path, decision) in used.chain(left) {
        let why = decision.to_string();
        if !reported.is_new_decision(peer, path, &why) {
            continue;
        }
        if json {
            let object = serde_json::json!({
                "peer": peer.to_string(),
                "fingerprint": path.to_string(),
                "verdict": decision.verdict,
                "reason": decision.reason.to_string(),
            });
            outln!("{object}");
        } else {
            errln!("{peer} over {}: {}", path.short(), plain(&why));
        }
    }
    for one in &progress.peers {
        let Some(congestion) = one.congestion else {
            continue;
        };
        if !reported.is_new_congestion(one.peer, one.fingerprint, congestion) {
            continue;
        }
        let (name, reason) = (congestion.algorithm.name(), congestion.reason);
        if json {
            let object = serde_json::json!({
                "peer": one.peer.to_string(),
                "fingerprint": one.fingerprint.to_string(),
                "congestion": name,
                "reason": reason.to_string(),
            });
            outln!("{object}");
        } else {
            errln!(
                "{} over {}: congestion control {name}: {reason}",
                one.peer,
                one.fingerprint.short()
            );
        }
    }
}

/// A line for the seeder, and one for each path-level peer; for unused paths, too, if `verbose`.
fn lines(progress: &SeedProgress, verbose: bool, paint: Paint) -> Vec<String> {
    let (sent, rate) = (progress.uploaded_bytes, progress.rate as f64);
    let (sent, rate, count) = (
        format::bytes(sent),
        format::rate(rate),
        progress.peers.len(),
    );
    let plural = if count == 1 { "" } else { "s" };
    let whole = format!("{sent} sent, {rate}, {count} path-level peer{plural}");
    let used = progress.peers.iter().map(|peer| {
        let why = peer.decision.as_ref();
        let why = why.map_or(String::new(), |why| plain(&format!("  {why}")));
        let (why, path) = (paint.faint(why), peer.fingerprint.short());
        let (bytes, rate) = (format::bytes(peer.bytes), format::rate(peer.rate as f64));
        format!("  {} over {path}  {bytes:>9}  {rate:>12}{why}", peer.peer)
    });
    let left = progress.left.iter().filter(|_| verbose).map(|left| {
        let why = plain(&left.decision.to_string());
        let path = left.fingerprint.short();
        format!("  {} over {path}  {}", left.peer, paint.faint(why))
    });
    std::iter::once(whole).chain(used).chain(left).collect()
}
