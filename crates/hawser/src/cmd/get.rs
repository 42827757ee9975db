//! `hawser get`: download a torrent.

mod bars;
mod job;
mod offered;
mod reasons;
mod report;
mod seeding;
mod table;
mod transfer;

use std::time::Duration;

use hawser_quic::Config;
use hawser_torrent::{Download, Metainfo};

use self::job::Job;
use self::offered::OfferedPaths;
use super::network::Sockets;
use super::{metainfo, network, policy, process, select};
use crate::cli::GetArgs;
use crate::failure::Failure;
use crate::out::{errln, plain};
use crate::output;

/// Keep-alive of a path while downloading: a packet a quarter second lets an SCMP message about a
/// dead link come back well within a second.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

/// Runs `hawser get`.
pub fn run(args: GetArgs) -> Result<(), Failure> {
    let metainfo = metainfo::read(&args.torrent)?;
    refuse_no_peers(&args, &metainfo)?;
    refuse_own_inputs(&args, &metainfo)?;
    let select = select::read(&args.select)?;
    let policy = policy::read(&args.policy)?;
    if args.output.exists() && !args.output.is_dir() {
        return Err(Failure::usage(format!(
            "-o {}: is a file: name a folder, the torrent names the files in it",
            args.output.display()
        )));
    }
    let options = args.options(select, policy);
    process::runtime()?.block_on(async {
        let (sockets, offered) = open(&args).await?;
        let job = Job {
            name: metainfo.name.clone(),
            info_hash: metainfo.info_hash.to_string(),
            bytes: metainfo.pieces.total,
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
        let ended = transfer::run(&job, download, offered).await;
        sockets.close().await;
        ended
    })
}

/// The sockets of a download, and the paths to its SCION peers. With IP peers alone no SCION
/// network is looked for, unless `--listen` is given.
async fn open(args: &GetArgs) -> Result<(Sockets, OfferedPaths), Failure> {
    let mut offered = OfferedPaths::default();
    let mut host = None;
    if args.listen.is_some() || args.peer.iter().any(|peer| peer.scion().is_some()) {
        let found = network::host(&args.host).await?;
        offered = OfferedPaths::new(&found, args);
        host = Some(found);
    }
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        ..Config::default()
    };
    let sockets = Sockets::open(host, config, args.listen, args.tcp).await?;
    Ok((sockets, offered))
}

/// Refuses a download without a peer to fetch from.
fn refuse_no_peers(args: &GetArgs, metainfo: &Metainfo) -> Result<(), Failure> {
    if !args.peer.is_empty() {
        return Ok(());
    }
    let sources = match (&metainfo.trackers[..], &metainfo.web_seeds[..]) {
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

/// Refuses to overwrite the files that this command reads, even with `--force`.
fn refuse_own_inputs(args: &GetArgs, metainfo: &Metainfo) -> Result<(), Failure> {
    let carbon = args.select.carbon.as_deref();
    let inputs = [
        Some(args.torrent.as_path()),
        carbon,
        policy::file(&args.policy),
    ];
    let found: Vec<_> = inputs
        .into_iter()
        .flatten()
        .filter_map(|input| Some((input, std::fs::metadata(input).ok()?)))
        .collect();
    for file in metainfo.files.iter().filter(|file| !file.padding) {
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
