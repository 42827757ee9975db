//! `hawser daemon`: the torrents of this host and its queue of transfers, until it is stopped.

mod automation;
mod config;
mod limits;
mod port;
mod transfers;
mod ways;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hawser_client::{Engine, IncompleteChange, NetworkSettings, PeerAddresses, PortMapper};
use hawser_daemon::{Options, Prepared};
use hawser_discovery::DhtNodes;
use hawser_endhost::Endhost;
use hawser_quic::Config;
use hawser_service::{HostNetwork, ServiceEvent};
use hawser_torrent::{IpTransports, PeerAddr};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::automation::{AutomationArgs, absolute};
pub use self::config::{state_to_find, usual};
use self::limits::LimitArgs;
pub use self::limits::ratio;
use self::port::PortArgs;
use self::ways::DaemonDht;
use super::address::{Listen, listen, tcp};
use super::find::{self, FindArgs, Ways};
use super::network::{HostArgs, Sockets, TransportArgs};
use super::storage::StorageArgs;
use super::{files, headings, process};
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln, plain};

/// The folder of the nodes of the DHT, in that of the state.
const NODES: &str = "dht";

/// Keep-alive interval of a path, as of a download.
const KEEP_ALIVE: Duration = Duration::from_millis(250);

#[derive(clap::Args)]
pub struct DaemonArgs {
    /// The folder for downloads, where a torrent names no other [default: the present one]
    ///
    /// Kept with the torrents until another one is given: here, by the API, or by Transmission's RPC.
    #[arg(long, value_name = "DIR")]
    pub download_dir: Option<PathBuf>,
    /// The folder for content until all that is wanted of it is there, or none
    ///
    /// Content is moved to its folder then. Holds for torrents that are added from now on, and is kept until another
    /// one is given: here, by the API, or by Transmission's RPC.
    #[arg(long, value_name = "DIR", help_heading = headings::RARE, hide_short_help = true)]
    pub incomplete_dir: Option<PathBuf>,
    /// Where IP peers connect; port 0 is any that is free, none for nowhere
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:6881", value_parser = tcp_or_none)]
    pub tcp: TcpArg,
    /// Where the page and the API listen: an address of the loopback interface [default: 127.0.0.1:9091]
    #[arg(long, value_name = "ADDR", value_parser = loopback)]
    pub listen: Option<SocketAddr>,
    /// The folder of the state [default: /var/lib/hawser/daemon for root, hawser/daemon in
    /// $XDG_DATA_HOME or ~/.local/share for others]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The configuration: users, TLS, transfers [default: daemon.toml in /etc/hawser or ~/.config/hawser]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the configuration, and end
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    pub check: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where SCION peers connect: IP:PORT, or a SCION address of this AS [default: any port]
    #[arg(long, value_name = "ADDR", value_parser = listen, help_heading = headings::RARE, hide_short_help = true)]
    pub scion: Option<Listen>,
    /// Reach IP peers alone: do not look for a SCION network
    #[arg(long, conflicts_with_all = ["sciond", "config_dir", "bootstrap", "local", "scion"], help_heading = headings::RARE, hide_short_help = true)]
    pub no_scion: bool,
    #[command(flatten)]
    pub automation: AutomationArgs,
    #[command(flatten)]
    pub storage: StorageArgs,
    #[command(flatten)]
    pub port: PortArgs,
    #[command(flatten)]
    pub find: FindArgs,
    #[command(flatten)]
    pub transport: TransportArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// An address at which peers connect, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpArg(Option<SocketAddr>);

fn tcp_or_none(text: &str) -> Result<TcpArg, String> {
    match text {
        "none" => Ok(TcpArg(None)),
        address => tcp(address).map(|address| TcpArg(Some(address))),
    }
}

/// Reads an address at which the token can be sent without encryption.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "write an address and a port, for example 127.0.0.1:9091".to_owned();
    let address: SocketAddr = text.parse().map_err(|_| wrong())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "the token would cross the network unencrypted: write 127.0.0.1:PORT, and reach it from \
             other hosts through a tunnel, for example of ssh -L"
                .to_owned(),
        ),
    }
}

/// Runs `hawser daemon` until SIGINT or SIGTERM.
pub fn run(args: DaemonArgs) -> Result<(), Failure> {
    process::raise_file_limit();
    let ways = args.find.ways_of_all()?;
    let config = config::read(args.config.as_deref())?;
    if args.check {
        let file = args.config.clone().map_or_else(usual, Ok)?;
        outln!("{} is valid", file.display());
        return Ok(());
    }
    let state = config::state(args.state.as_deref(), &config)?;
    for (flag, folder) in [
        ("--state", Some(&state)),
        ("--download-dir", args.download_dir.as_ref()),
        ("--watch-dir", args.automation.watch.as_ref()),
    ] {
        folder.map_or(Ok(()), |it| files::check_output_folder(flag, it))?;
    }
    let options = Options {
        listen: args.listen,
        config,
        torrents: torrents(&args, state)?,
    };
    process::runtime()?.block_on(async {
        process::survive_hangup()?;
        let stop = process::interrupted()?;
        // A few for each job and session, of which there are limits.
        let (events, mut happened) = unbounded_channel();
        let mut senders = HashMap::new();
        let ended = {
            let mut working = pin!(work(&args, ways, options, stop, events));
            loop {
                tokio::select! {
                    ended = &mut working => break ended,
                    Some(event) = happened.recv() => transfers::show(event, &mut senders)?,
                }
            }
        };
        while let Ok(event) = happened.try_recv() {
            transfers::show(event, &mut senders)?;
        }
        ended
    })
}

/// Runs the daemon until `stop` is ready; what happens to transfers goes to `events`.
async fn work(
    args: &DaemonArgs,
    ways: Ways,
    options: Options,
    stop: impl Future,
    events: UnboundedSender<ServiceEvent>,
) -> Result<(), Failure> {
    let (state, config) = (options.torrents.state.clone(), options.config.clone());
    let (prepared, damaged) = Prepared::open(options).await?;
    for file in damaged {
        let (path, aside) = (file.path.display(), file.set_aside.display());
        let reason = plain(&file.reason);
        errln!("hawser: {path} is damaged, and is now {aside}: {reason}");
    }
    let (host, network) = join(args, &config, &state, &events).await?;
    let (api, count) = (prepared.addresses(), prepared.torrents());
    let settings = prepared.network();
    let ways = ways::with_kept(ways, settings);
    let joined = prepared.join(network, events).await?;
    let sockets = open(args, settings, host).await?;
    let dht = Arc::new(DaemonDht::new(&args.find, &sockets, state.join(NODES)));
    let nodes = ways.dht.then(|| dht.open()).transpose()?;
    let at = nodes.as_ref().map_or(Vec::new(), DhtNodes::local_addrs);
    let at: Vec<String> = at.iter().map(PeerAddr::to_string).collect();
    let mapper = args.port.start(sockets.addresses.tcp)?;
    let addresses = PeerAddresses {
        scion: sockets.addresses.scion,
        tcp: sockets.addresses.tcp,
        dht: ways.dht,
        local: ways.local,
        exchange: ways.pex,
    };
    let ready = || {
        let plural = if count == 1 { "" } else { "s" };
        outln!("serving {count} torrent{plural} {}", sockets.addresses);
        if !at.is_empty() {
            outln!("nodes of the DHT at {}", at.join(", "));
        }
        transfers::show_limits(&config);
        outln!("API at http://{}", api.http);
        if let Some(address) = api.https {
            outln!("API at https://{address}");
        }
        outln!("page at http://{}/", api.http);
    };
    // Also without an engine what was begun is ended in order.
    let ended = match engine(args, ways, &sockets, nodes, mapper.as_ref()) {
        Ok(engine) => joined
            .run(
                engine.with_openers(ways::openers(&dht, &sockets)),
                addresses,
                stop,
                ready,
            )
            .await
            .map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    if let Some(mapper) = mapper {
        mapper.stop().await;
    }
    dht.stop().await;
    sockets.close().await;
    ended
}

/// What the torrents are to do.
fn torrents(args: &DaemonArgs, state: PathBuf) -> Result<hawser_client::Options, Failure> {
    Ok(hawser_client::Options {
        state,
        default_dir: std::env::current_dir().doing("the present folder")?,
        download_dir: absolute(args.download_dir.as_deref())?,
        incomplete: match args.incomplete_dir.as_deref() {
            None => IncompleteChange::default(),
            Some(folder) if folder == "none" => IncompleteChange::to(None),
            folder => IncompleteChange::to(absolute(folder)?),
        },
        watch: absolute(args.automation.watch.as_deref())?,
        bounds: args.limits.bounds(),
        queue: args.limits.queue(),
        rates: args.limits.rates(),
        alternative: args.limits.alternative(),
        network: NetworkSettings {
            encryption: args.transport.encryption,
            transports: args.transport.transport,
            ..args.find.named()
        },
    })
}

/// This host in its SCION network, if there is one now, and that network for the transfers, which may join it
/// later. A network that is named must be there.
async fn join(
    args: &DaemonArgs,
    config: &hawser_service::Config,
    state: &Path,
    events: &UnboundedSender<ServiceEvent>,
) -> Result<(Option<Endhost>, HostNetwork), Failure> {
    if args.no_scion {
        let reason = "this host is in no SCION network: --no-scion is given";
        return Ok((None, HostNetwork::none(reason)));
    }
    let host = if args.host.is_named() {
        Some(args.host.join().await?)
    } else if config.network.is_named() {
        Some(
            config
                .network
                .join(state, events)
                .await
                .map_err(Failure::job)?,
        )
    } else if args.scion.is_some() {
        Some(args.host.join().await?)
    } else {
        args.host.join_if_any().await?
    };
    let network = host
        .clone()
        .map_or_else(HostNetwork::sought, HostNetwork::joined);
    Ok((host, network))
}

/// The sockets for peers of the torrents, which are reached as in `settings`.
async fn open(
    args: &DaemonArgs,
    settings: NetworkSettings,
    host: Option<Endhost>,
) -> Result<Sockets, Failure> {
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        congestion: args.transport.congestion.unwrap_or_default(),
        ..Config::default()
    };
    let mut sockets = Sockets::open(
        host,
        config,
        args.scion,
        args.tcp.0,
        settings.transports.unwrap_or(IpTransports::TCP),
    )
    .await?;
    sockets.keeps_utp_port = true;
    Ok(sockets.with_encryption(settings.encryption))
}

/// What all torrents share.
fn engine(
    args: &DaemonArgs,
    ways: Ways,
    sockets: &Sockets,
    dht: Option<DhtNodes>,
    mapper: Option<&PortMapper>,
) -> Result<Engine, Failure> {
    let mut finder = find::finder(ways, true, sockets, dht)?;
    let mut network = sockets.network.clone();
    if let Some(mapper) = mapper {
        finder = finder.with_mapped_port(mapper.tcp_port().into());
        network = network.with_mapped_port(mapper.tcp_port());
    }
    let mut engine = Engine::new(network, finder)
        .with_exchange(ways.pex)
        .with_storage(args.storage.options());
    if let Some(mapper) = mapper {
        engine = engine.with_port_mapping(mapper.state());
    }
    args.automation.apply(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_on_loopback_alone() {
        assert!(loopback("127.0.0.1:0").is_ok() && loopback("[::1]:9091").is_ok());
        assert!(
            loopback("0.0.0.0:9091")
                .unwrap_err()
                .contains("unencrypted")
        );
        assert!(loopback("localhost").is_err());
    }

    #[test]
    fn ip_peers_may_connect_or_not() {
        assert_eq!(tcp_or_none("none"), Ok(TcpArg(None)));
        assert!(tcp_or_none("127.0.0.1:0").is_ok_and(|tcp| tcp.0.is_some()));
        assert!(tcp_or_none("x").is_err());
    }
}
