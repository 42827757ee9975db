//! `hawser seed`: serve a file or folder.

use crate::out::{errln, outln, plain};
use crate::{
    cli::{Listen, SeedArgs},
    cmd::{self, news::News, torrent::bar_style},
    failure::Failure,
    format,
};
use hawser_endhost::Endhost;
use hawser_path::Select;
use hawser_quic::{Config, Endpoint};
use hawser_torrent::{ChangedFile, Listener, Network, Seed, SeedOptions, SeedProgress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::{io::IsTerminal, net::SocketAddr};

/// Runs `hawser seed` until interrupted.
pub fn run(args: SeedArgs) -> Result<(), Failure> {
    let metainfo = cmd::metainfo::read(&args.torrent)?;
    let select = args.select.unwrap_or_else(Select::shortest);
    let select = cmd::select::with_carbon(select, args.carbon.as_deref())?;
    let policy = cmd::policy::read(&args.policy)?;
    cmd::runtime()?.block_on(async {
        let host = cmd::host(&args.host).await?;
        let listen = listen_address(args.listen, &host)?;
        let endpoint = Endpoint::bind(host.clone(), listen, Config::new()).map_err(Failure::job)?;
        let mut network = Network::scion(endpoint.clone(), host);
        let mut tcp = None;
        if let Some(address) = args.tcp {
            let listener = Listener::bind(address).await.map_err(Failure::job)?;
            tcp = Some(listener.local_addr());
            network = network.with_listener(listener);
        }

        let bar = ProgressBar::new(metainfo.total_length()).with_style(bar_style());
        bar.set_message("checking");
        let checked = {
            let bar = bar.clone();
            move |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            }
        };
        let name = metainfo.name().to_owned();
        let size = metainfo.total_length();
        let info_hash = metainfo.info_hash().to_string();
        let mut options = SeedOptions::new()
            .with_select_by(args.select_by)
            .with_select(select)
            .with_sensing(!args.no_sensing);
        if let Some(policy) = policy {
            options = options.with_policy(policy);
        }
        let seed = Seed::start(metainfo, args.path, network, options, checked)
            .await
            .map_err(Failure::job)?;
        bar.finish_and_clear();

        let address = endpoint.local_addr();
        if args.json {
            let mut object = serde_json::json!({
                "name": name,
                "info_hash": info_hash,
                "bytes": size,
                "listening": address.to_string(),
            });
            if let Some(tcp) = tcp {
                object["listening_tcp"] = tcp.to_string().into();
            }
            outln!("{object}");
        } else {
            outln!(
                "seeding {} ({}) at {address}{}",
                plain(&name),
                format::bytes(size),
                tcp.map_or(String::new(), |tcp| format!(", and to IP peers at {tcp}")),
            );
        }

        let lines = Lines::new(args.verbose);
        let told = args.verbose && (args.json || !std::io::stderr().is_terminal());
        let mut news = News::default();
        let mut changed = Vec::new();
        let mut progress = seed.progress();
        let shown = async {
            while progress.changed().await.is_ok() {
                let progress = progress.borrow_and_update();
                for file in progress.changed.iter().filter(|f| !changed.contains(*f)) {
                    lines.all.suspend(|| tell_changed(file, args.json));
                }
                changed.clone_from(&progress.changed);
                if told {
                    tell(&mut news, &progress, args.json);
                }
                lines.show(&progress);
            }
            std::future::pending::<()>().await
        };
        let ended = tokio::select! {
            ended = seed.wait() => ended.map_err(Failure::job),
            signal = cmd::interrupted() => signal,
            () = shown => Ok(()),
        };
        lines.clear();
        endpoint.close().await;
        ended
    })
}

/// Tells of each path of which there is news.
fn tell(news: &mut News, progress: &SeedProgress, json: bool) {
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
                "reason": decision.reason,
            });
            outln!("{object}");
        } else {
            errln!("{peer} over {}: {}", path.short(), plain(&why));
        }
    }
}

/// Tells of a file that is not, or not wholly, what the torrent describes any more.
fn tell_changed(file: &ChangedFile, json: bool) {
    if json {
        let object = serde_json::json!({
            "file": file.path,
            "pieces": file.pieces,
            "lost_pieces": file.lost,
            "error": file.error,
        });
        outln!("{object}");
    } else {
        errln!("hawser: {}", plain(&file.to_string()));
    }
}

fn listen_address(listen: Option<Listen>, host: &Endhost) -> Result<Option<SocketAddr>, Failure> {
    match listen {
        None => Ok(None),
        Some(Listen::Ip(address)) => Ok(Some(address)),
        Some(Listen::Scion(address)) if address.isd_as == host.local_as() => Ok(Some(address.host)),
        Some(Listen::Scion(address)) => Err(Failure::usage(format!(
            "--listen {address}: this host is in {}",
            host.local_as()
        ))),
    }
}

/// One line for the whole and one for each path-level peer, on a terminal.
struct Lines {
    /// Paths that are not used have lines too.
    verbose: bool,
    all: MultiProgress,
    whole: ProgressBar,
    peers: std::cell::RefCell<Vec<ProgressBar>>,
}

impl Lines {
    fn new(verbose: bool) -> Lines {
        let all = MultiProgress::new();
        let whole = all.add(ProgressBar::new_spinner().with_style(line_style()));
        Lines {
            verbose,
            all,
            whole,
            peers: Default::default(),
        }
    }

    fn show(&self, progress: &SeedProgress) {
        self.whole.set_message(format!(
            "{} sent, {}, {} path-level peers",
            format::bytes(progress.uploaded_bytes),
            format::rate(progress.rate as f64),
            progress.peers.len(),
        ));
        let used = progress.peers.iter().map(|peer| {
            let why = peer.decision.as_ref();
            format!(
                "  {} over {}  {}  {}{}",
                peer.peer,
                peer.fingerprint.short(),
                format::bytes(peer.bytes),
                format::rate(peer.rate as f64),
                why.map_or(String::new(), |why| format!("  {why}")),
            )
        });
        let left = progress.left.iter().filter(|_| self.verbose);
        let left = left.map(|left| {
            let why = plain(&left.decision.to_string());
            format!("  {} over {}  {why}", left.peer, left.fingerprint.short())
        });
        let texts: Vec<String> = used.chain(left).collect();
        let mut lines = self.peers.borrow_mut();
        while lines.len() < texts.len() {
            lines.push(
                self.all
                    .add(ProgressBar::new_spinner().with_style(line_style())),
            );
        }
        for line in lines.drain(texts.len()..) {
            line.finish_and_clear();
        }
        for (line, text) in lines.iter().zip(texts) {
            line.set_message(text);
        }
    }

    fn clear(&self) {
        self.peers
            .borrow()
            .iter()
            .for_each(ProgressBar::finish_and_clear);
        self.whole.finish_and_clear();
    }
}

/// A line of text.
fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}
