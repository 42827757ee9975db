//! `hawser get`: download a torrent.

mod bars;
mod seeding;
mod told;
mod transfer;

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_endhost::{Endhost, Path};
use hawser_path::{Fingerprint, Interface};
use hawser_quic::Config;
use hawser_torrent::{
    Download, DownloadError, DownloadOptions, Metainfo, Progress, SelectBy, StoreError, Summary,
};
use serde::Serialize;
use tokio::sync::watch;

use crate::cli::GetArgs;
use crate::cmd::network::{Addresses, Sockets};
use crate::failure::Failure;
use crate::out::{errln, outln, plain};
use crate::{cmd, format, output};

/// Keep-alive of a path while downloading: a packet a quarter second lets an SCMP message about a
/// dead link come back well within a second.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// What `hawser get --json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The torrent's name.
    pub name: String,
    /// Its info-hash, in hex.
    pub info_hash: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// Where SCION peers connect; `None` without a SCION network.
    pub listening: Option<String>,
    /// Where IP peers connect, if they can.
    pub listening_tcp: Option<String>,
    /// Bytes fetched and verified.
    pub fetched_bytes: u64,
    /// Bytes that were on disk already.
    pub resumed_bytes: u64,
    /// Bytes received for nothing.
    pub wasted_bytes: u64,
    /// Bytes of blocks sent to others until then.
    pub uploaded_bytes: u64,
    /// Time of the download, path lookup and handshakes included.
    pub seconds: f64,
    /// Time of checking what was on disk.
    pub check_seconds: f64,
    /// Fetched bits of the file per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The paths that carried blocks.
    pub paths: Vec<PathReport>,
    /// The other paths that were on offer at the end.
    pub unused_paths: Vec<PathReport>,
    /// How it went, about ten times a second, when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Sample>,
}

/// A moment of a download.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Since the download began, path lookup and handshakes included.
    pub seconds: f64,
    /// Bytes of blocks received until then, those thrown away not counted.
    pub bytes: u64,
    /// Bytes of blocks received until then over each path, by fingerprint.
    pub paths: BTreeMap<String, u64>,
}

impl Sample {
    fn of(progress: &Progress) -> Self {
        let mut paths = BTreeMap::new();
        for path in progress.paths.iter().filter(|path| path.bytes > 0) {
            *paths.entry(path.fingerprint.to_string()).or_default() += path.bytes;
        }
        Self {
            seconds: progress.elapsed.as_secs_f64(),
            bytes: progress.fetched_bytes.saturating_sub(progress.wasted_bytes),
            paths,
        }
    }
}

/// One path of a [`Report`].
#[derive(Debug, Serialize)]
pub struct PathReport {
    /// The peer at its other end.
    pub peer: String,
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// ASes on the path, both ends included, as `hawser paths` counts them; 0 where nobody told.
    pub hops: usize,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// Largest SCION packet on the path, in bytes; none if the path is gone.
    pub mtu: Option<u16>,
    /// Bytes of the data-plane path in each packet's header.
    pub path_bytes: Option<usize>,
    /// The interfaces it crosses.
    pub interfaces: Vec<String>,
    /// What became of it in the end: taken, left or waiting; none where that is not known.
    pub verdict: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Runs `hawser get`.
pub fn run(args: GetArgs) -> Result<(), Failure> {
    let metainfo = cmd::metainfo::read(&args.torrent)?;
    refuse_no_peers(&args, &metainfo)?;
    refuse_own_inputs(&args, &metainfo)?;
    let select = cmd::select::read(&args.select)?;
    let policy = cmd::policy::read(&args.policy)?;
    if args.output.exists() && !args.output.is_dir() {
        return Err(Failure::usage(format!(
            "-o {}: is a file: name a folder, the torrent names the files in it",
            args.output.display()
        )));
    }
    let mut options = DownloadOptions::new()
        .with_paths(args.select.most())
        .with_select(select)
        .with_select_by(select_by(&args))
        .with_min_weight(args.min_weight / 100.0)
        .with_time_slot(Duration::from_millis(args.time_slot))
        .with_sensing(!args.no_sensing)
        .with_overwrite(args.force);
    if let Some(policy) = policy {
        options = options.with_policy(policy);
    }
    if let Some(limits) = args.seeding.limits() {
        options = options.with_seed(limits);
    }
    cmd::runtime()?.block_on(async {
        let (sockets, known) = open(&args).await?;
        let job = Job {
            name: metainfo.name().to_owned(),
            info_hash: metainfo.info_hash().to_string(),
            bytes: metainfo.total_length(),
            addresses: sockets.addresses(),
            args,
        };
        if job.args.tcp.is_some() || job.args.listen.is_some() {
            errln!("listening {}", job.addresses);
        }
        let download = Download::start(
            metainfo,
            job.args.output.clone(),
            job.args.peer.clone(),
            sockets.network.clone(),
            options,
        );
        let ended = transfer::run(&job, download, known).await;
        sockets.close().await;
        ended
    })
}

/// What is downloaded, and how it was asked for.
struct Job {
    name: String,
    info_hash: String,
    /// Of all files.
    bytes: u64,
    addresses: Addresses,
    args: GetArgs,
}

/// The sockets of a download, and the paths to its SCION peers. With IP peers alone nobody asks for
/// a SCION network, unless it is to listen there.
async fn open(args: &GetArgs) -> Result<(Sockets, Known), Failure> {
    let mut known = Known::default();
    let mut host = None;
    if args.listen.is_some() || args.peer.iter().any(|peer| peer.scion().is_some()) {
        let found = cmd::host(&args.host).await?;
        known = Known::new(&found, args);
        host = Some(found);
    }
    let config = Config::new().with_keep_alive(Some(KEEP_ALIVE));
    let sockets = Sockets::open(host, config, args.listen, args.tcp).await?;
    Ok((sockets, known))
}

/// Says what is missing where nobody is named to fetch from.
fn refuse_no_peers(args: &GetArgs, metainfo: &Metainfo) -> Result<(), Failure> {
    if !args.peer.is_empty() {
        return Ok(());
    }
    let sources = match (metainfo.trackers(), metainfo.web_seeds()) {
        ([], []) => "",
        (_, []) => "the torrent's trackers are not asked yet: ",
        ([], _) => "the torrent's web seeds are not used yet: ",
        (_, _) => "the torrent's trackers and web seeds are not used yet: ",
    };
    Err(Failure::usage(format!(
        "{}: {sources}name at least one peer with --peer, for example --peer \
         1-ff00:0:110,10.0.1.1:31000 or --peer 10.0.1.1:6881",
        args.torrent.display()
    )))
}

/// A download never goes over what this command reads, `--force` or not.
fn refuse_own_inputs(args: &GetArgs, metainfo: &Metainfo) -> Result<(), Failure> {
    let carbon = args.select.carbon.as_deref();
    let inputs = [
        Some(args.torrent.as_path()),
        carbon,
        cmd::policy::file(&args.policy),
    ];
    let found: Vec<_> = inputs
        .into_iter()
        .flatten()
        .filter_map(|input| Some((input, std::fs::metadata(input).ok()?)))
        .collect();
    for file in metainfo.files().iter().filter(|file| !file.padding) {
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

/// What `--force` helps against says so.
fn failure(error: DownloadError) -> Failure {
    match error {
        DownloadError::Store(error @ (StoreError::Foreign { .. } | StoreError::TooLong { .. })) => {
            Failure::job(format!("{error}, or overwrite it with --force"))
        }
        error => Failure::job(error),
    }
}

/// Who chooses paths: who says how, means to choose.
fn select_by(args: &GetArgs) -> SelectBy {
    args.select_by.unwrap_or(match args.select.select {
        Some(_) => SelectBy::Downloader,
        None => SelectBy::Uploader,
    })
}

/// Every path offered during the download, by fingerprint.
#[derive(Default)]
struct Known {
    watched: Vec<watch::Receiver<std::sync::Arc<Vec<Path>>>>,
    paths: BTreeMap<Fingerprint, Path>,
}

impl Known {
    fn new(host: &Endhost, args: &GetArgs) -> Self {
        let mut ases: Vec<_> = args
            .peer
            .iter()
            .filter_map(|p| Some(p.scion()?.isd_as))
            .collect();
        ases.sort_unstable();
        ases.dedup();
        Self {
            watched: ases.into_iter().map(|isd_as| host.watch(isd_as)).collect(),
            paths: BTreeMap::new(),
        }
    }

    fn note(&mut self) {
        for watched in &mut self.watched {
            for path in watched.borrow_and_update().iter() {
                self.paths.insert(path.fingerprint(), path.clone());
            }
        }
    }
}

fn report(job: &Job, summary: &Summary, known: &Known) -> Report {
    let seconds = summary.download_time.as_secs_f64();
    let text = Interface::to_string;
    let paths = summary.paths.iter().map(|path| {
        let offered = known.paths.get(&path.fingerprint);
        PathReport {
            peer: path.peer.to_string(),
            fingerprint: path.fingerprint.to_string(),
            hops: path.hops,
            bytes: path.bytes,
            mtu: offered.map(Path::mtu),
            path_bytes: offered.map(|p| p.raw().len()),
            // What the peer told is in its direction.
            interfaces: match offered {
                Some(known) => known.info().interfaces.iter().map(text).collect(),
                None => path.interfaces.iter().rev().map(text).collect(),
            },
            verdict: None,
            reason: None,
        }
    });
    Report {
        name: job.name.clone(),
        info_hash: job.info_hash.clone(),
        bytes: job.bytes,
        listening: job.addresses.scion.map(|address| address.to_string()),
        listening_tcp: job.addresses.tcp.map(|address| address.to_string()),
        fetched_bytes: summary.fetched_bytes,
        resumed_bytes: summary.resumed_bytes,
        wasted_bytes: summary.wasted_bytes,
        uploaded_bytes: summary.uploaded_bytes,
        seconds,
        check_seconds: summary.check_time.as_secs_f64(),
        goodput_mbit: if seconds > 0.0 {
            summary.fetched_bytes as f64 * 8.0 / seconds / 1e6
        } else {
            0.0
        },
        paths: paths.collect(),
        unused_paths: Vec::new(),
        samples: Vec::new(),
    }
}

fn print_report(report: &Report, verbose: bool) {
    outln!(
        "{}: {} fetched in {:.1} s, {}{}",
        plain(&report.name),
        format::bytes(report.fetched_bytes),
        report.seconds,
        format::rate(report.goodput_mbit * 1e6),
        if report.resumed_bytes > 0 {
            format!(
                ", {} were there already",
                format::bytes(report.resumed_bytes)
            )
        } else {
            String::new()
        },
    );
    told::print(report, verbose);
}
