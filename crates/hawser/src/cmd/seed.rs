//! `hawser seed`: serve a file or folder.

mod lines;

use std::io::IsTerminal;

use hawser_endhost::{BootstrapError, Endhost};
use hawser_path::Select;
use hawser_quic::Config;
use hawser_torrent::{Seed, SeedProgress};

use self::lines::Lines;
use super::changes::Changes;
use super::network::Sockets;
use super::news::News;
use super::work::Work;
use super::{files, metainfo, policy, process, select};
use crate::cli::SeedArgs;
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Runs `hawser seed` until interrupted.
pub fn run(args: SeedArgs) -> Result<(), Failure> {
    let metainfo = metainfo::read(&args.torrent)?;
    let select = args.select.clone().unwrap_or_else(Select::shortest);
    let select = select::with_carbon(select, args.carbon.as_deref())?;
    let policy = policy::read(&args.policy)?;
    files::check_input(&args.path)?;
    process::runtime()?.block_on(async {
        let (host, no_scion) = match scion(&args).await? {
            Ok(host) => (Some(host), None),
            Err(why) => (None, Some(why)),
        };
        let sockets = Sockets::open(host, Config::default(), args.listen, args.tcp).await?;

        let mut work = Work::begin("checking");
        let checked = move |done, total| work.show(done, total);
        let name = metainfo.name.clone();
        let size = metainfo.pieces.total;
        let info_hash = metainfo.info_hash.to_string();
        let options = args.options(select, policy);
        let network = sockets.network.clone();
        let seed = Seed::start(metainfo, args.path, network, options, checked)
            .await
            .map_err(Failure::job)?;

        let addresses = sockets.addresses();
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
            outln!("{object}");
        } else {
            outln!(
                "seeding {} ({}) {addresses}",
                plain(&name),
                format::bytes(size)
            );
        }

        let mut lines = Lines::new(args.verbose);
        let reported = args.verbose && (args.json || !std::io::stderr().is_terminal());
        let mut news = News::default();
        let mut changes = Changes::default();
        let mut progress = seed.progress();
        let shown = async {
            while progress.changed().await.is_ok() {
                let progress = progress.borrow_and_update();
                changes.report(&progress.changed, args.json);
                if reported {
                    report(&mut news, &progress, args.json);
                }
                lines.show(&progress);
            }
            std::future::pending::<()>().await
        };
        let ended = tokio::select! {
            ended = seed.wait() => ended.map_err(Failure::job),
            signal = process::interrupted() => signal,
            () = shown => Ok(()),
        };
        drop(lines);
        sockets.close().await;
        ended
    })
}

/// This host in its SCION network, or the reason why IP peers are served alone. A way into the
/// network that was named or is there must work; otherwise there is no SCION network.
async fn scion(args: &SeedArgs) -> Result<Result<Endhost, String>, Failure> {
    if args.no_scion {
        return Ok(Err("left out by --no-scion".to_owned()));
    }
    let error = match Endhost::bootstrap(&args.host.bootstrap()).await {
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

/// Prints the decision on each path whose decision is new.
fn report(news: &mut News, progress: &SeedProgress, json: bool) {
    let used = progress.peers.iter();
    let used = used.filter_map(|one| Some((one.peer, one.fingerprint, one.decision.as_ref()?)));
    let left = progress.left.iter();
    let left = left.map(|one| (one.peer, one.fingerprint, &one.decision));
    for (peer, path, decision) in used.chain(left) {
        let why = decision.to_string();
        if !news.is_news(peer, path, &why) {
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
}
