//! `hawser tracker`: a tracker for BitTorrent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hawser_discovery::{ScionDatagrams, ServeOptions, Server};
use hawser_tracker::Counters;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::address::tcp;
use super::network::{HostArgs, ListenArgs, listen_address};
use super::{folders, process};
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// The name of the file with the swarms, in the folder of the state.
const FILE: &str = "swarms";

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct TrackerArgs {
    /// Where clients announce over HTTP, for example 0.0.0.0:6969; port 0 is any free one. Several
    /// times for several addresses
    #[arg(long, value_name = "IP:PORT", value_parser = tcp, required_unless_present_any = ["udp", "listen"])]
    http: Vec<SocketAddr>,
    /// Where clients announce over UDP, as --http
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    udp: Vec<SocketAddr>,
    #[command(flatten)]
    listen: ListenArgs,
    /// The folder that keeps the swarms over a restart; for root /var/lib/hawser/tracker, else
    /// hawser/tracker in $XDG_DATA_HOME or ~/.local/share, when not given
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print JSON: one object when it listens, and one with what it counted at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// Serves until this process gets SIGINT or SIGTERM.
pub fn run(args: TrackerArgs) -> Result<(), Failure> {
    let folder = match args.state {
        Some(folder) => folder,
        None => folders::state("tracker")?,
    };
    std::fs::create_dir_all(&folder).doing(folder.display())?;
    process::raise_file_limit();
    process::runtime()?.block_on(async {
        let scion = match args.listen.listen {
            Some(listen) => {
                let host = args.host.join().await?;
                let address = listen_address(Some(listen), &host)?;
                Some(Arc::new(ScionDatagrams::bind(&host, address)?))
            }
            None => None,
        };
        let server = Server::bind(ServeOptions {
            http: args.http,
            udp: args.udp,
            scion: scion.clone().map(|socket| socket as _),
            state: Some(folder.join(FILE)),
            ..ServeOptions::default()
        })?;
        let urls = |scheme: &str, addrs: Vec<SocketAddr>| -> Vec<String> {
            let url = |addr| format!("{scheme}://{addr}/announce");
            addrs.into_iter().map(url).collect()
        };
        let mut urls_of_all = urls("http", server.http_addrs()?);
        urls_of_all.extend(urls("udp", server.udp_addrs()?));
        urls_of_all.extend(scion.as_ref().map(|socket| {
            let addr = socket.local_addr();
            let (isd_as, host) = (addr.isd_as, addr.host);
            format!("udp://[{isd_as},{}]:{}", host.ip(), host.port())
        }));
        let interrupted = process::interrupted()?;
        match args.json {
            true => outln!("{}", json!({ "announce": urls_of_all })),
            false => urls_of_all
                .iter()
                .for_each(|url| outln!("tracker at {url}")),
        }
        let monitor = server.monitor();
        let stop = CancellationToken::new();
        let running = server.run(&stop);
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = interrupted => {
                stop.cancel();
                running.await
            }
        };
        let counters = monitor.counters();
        match args.json {
            true => outln!("{}", object(&counters)),
            false => outln!(
                "{} announces and {} scrapes answered; {} peers of {} torrents",
                counters.announces,
                counters.scrapes,
                counters.peers,
                counters.torrents
            ),
        }
        Ok(ended?)
    })
}

fn object(counters: &Counters) -> Value {
    json!({
        "announces": counters.announces,
        "scrapes": counters.scrapes,
        "connects": counters.connects,
        "limited": counters.limited,
        "invalid": counters.invalid,
        "not_stored": counters.not_stored,
        "expired": counters.expired,
        "torrents": counters.torrents,
        "peers": counters.peers,
        "seeders": counters.seeders,
    })
}
