//! `hawser shim up`.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::pin::pin;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hawser_http::{READY, notify};
use hawser_shim::carrier::{Captured, Carrier, CarrierOptions, PlainIpOptions, Trust};
use hawser_shim::choice::CarrierKind;
use hawser_shim::holder::{self, AttachOptions, FailMode};
use hawser_shim::map::Entry;
use hawser_shim::{DEFAULT_PORT, PLAIN_IP_PORT};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::attach::attach;
use super::client::ClientArgs;
use super::exposed::ExposeArgs;
use super::{NameArgs, busy, filter, gateway, place, report};
use crate::cmd::network::{HostArgs, listen_address};
use crate::cmd::trust::ServeArgs;
use crate::cmd::{headings, print, process};
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// Help for `--listen`.
const LISTEN_HELP: &str =
    "Listen here: IP:PORT, or a SCION address of this AS [default: port 31800]";

#[derive(clap::Args)]
#[command(mut_arg("listen", |arg| arg.help(LISTEN_HELP).long_help(LISTEN_HELP)))]
pub struct UpArgs {
    #[command(flatten)]
    name: NameArgs,
    #[command(flatten)]
    expose: ExposeArgs,
    #[command(flatten)]
    serve: ServeArgs,
    /// Carry the connections of other hosts, too, that are routed through this one: those to PREFIX go
    /// to the gateway at TARGET, ISD-AS,IP or ISD-AS,IP:PORT, and those to what the map has; may be
    /// given several times
    #[arg(long, value_name = "PREFIX=TARGET", value_parser = gateway::parse, help_heading = headings::RARE, hide_short_help = true)]
    gateway: Vec<Entry>,
    /// What carries connections of this host's programs
    ///
    /// Other hosts may use either.
    #[arg(long, default_value_t, value_parser = carrier())]
    carrier: CarrierKind,
    /// What becomes of mapped destinations if the shim dies without being taken down: `closed` rejects
    /// connections and packets to them until the shim is up again or taken down, `open` lets them leave
    /// over IP
    #[arg(
        long,
        value_name = "HOW",
        default_value = "open",
        overrides_with = "fail",
        help_heading = headings::RARE,
        hide_short_help = true
    )]
    #[arg(value_parser = fail_mode())]
    fail: FailMode,
    /// Have captured connections arrive at this TCP port of this host, for rules of a firewall
    /// [default: any]
    #[arg(long, value_name = "PORT", help_heading = headings::RARE, hide_short_help = true)]
    redirect_port: Option<NonZeroU16>,
    /// After traffic, look for packets again for this long before waiting for them: up to 100ms; auto is
    /// 200us, and off while the machine runs on a battery
    ///
    /// It saves a wake-up where packets come that soon, and keeps a processor from resting. Where other
    /// programs want all processors, round trips become longer.
    #[arg(long, value_name = "TIME|auto|off", default_value = "off", value_parser = busy::parse, help_heading = headings::RARE, hide_short_help = true)]
    busy_poll: busy::Wanted,
    #[command(flatten)]
    client: ClientArgs,
    /// Use plain IP beside SCION, and in its place while no path works. With an address, other hosts
    /// that have this flag may connect to it, and learn of it over SCION [default port: 30800]
    #[arg(long, value_name = "IP[:PORT]", value_parser = plain_ip, help_heading = headings::RARE, hide_short_help = true)]
    #[allow(
        clippy::option_option,
        reason = "clap has no other type for an optional value"
    )]
    plain: Option<Option<SocketAddr>>,
    /// Serve metrics for Prometheus over HTTP, at /metrics: IP:PORT, or PORT of 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = report::metrics_address, help_heading = headings::RARE, hide_short_help = true)]
    metrics: Option<SocketAddr>,
    /// Print JSON: one object when the shim is up
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

fn plain_ip(text: &str) -> Result<SocketAddr, String> {
    let ip = text.trim_start_matches('[').trim_end_matches(']');
    let ip = ip.parse().map(|ip| SocketAddr::new(ip, PLAIN_IP_PORT));
    let wrong = |_| "write one of this host's IP addresses, or IP:PORT".to_owned();
    ip.or_else(|_| text.parse()).map_err(wrong)
}

/// The values of `--carrier`, and what help says about each.
const CARRIERS: [(&str, &str); 2] = [
    (
        "quic",
        "a stream over several QUIC connections: no MPTCP is needed",
    ),
    (
        "mptcp",
        "the kernel's MPTCP: connections live on when the shim is killed and started again",
    ),
];

fn carrier() -> impl TypedValueParser<Value = CarrierKind> {
    let names = CARRIERS.map(|(name, help)| PossibleValue::new(name).help(help));
    // Its error says what to write in place of what earlier versions had.
    let earlier = PossibleValue::new("auto").hide(true);
    PossibleValuesParser::new(names.into_iter().chain([earlier]))
        .try_map(|name| name.parse::<CarrierKind>())
}

/// The values of `--fail`.
fn fail_mode() -> impl TypedValueParser<Value = FailMode> {
    PossibleValuesParser::new(["open", "closed"]).try_map(|name| name.parse::<FailMode>())
}

/// Runs `hawser shim up`.
pub fn run(args: UpArgs) -> Result<(), Failure> {
    let client = &args.client;
    let (identity, paths, served) = (client.identity()?, client.paths()?, args.expose.served());
    let trust = Trust {
        servers: client.servers()?,
        clients: args.serve.allowed()?,
    };
    // A map that cannot be used is refused now; later the former one stays in force.
    client.check_map()?;
    gateway::warn_without_forwarding(&args.gateway);
    filter::warn_of_dropping(args.redirect_port);
    place::prepare()?;
    process::raise_file_limit();
    process::runtime()?.block_on(async {
        process::survive_hangup()?;
        let host = args.host.join().await?;
        let listen = listen_address(args.serve.listen.listen, &host)?;
        let metrics = match args.metrics {
            Some(address) => Some(report::metrics_listener(address).await?),
            None => None,
        };
        let metrics_address = metrics.as_ref().and_then(|one| one.local_addr().ok());
        let key = identity.key();
        let interrupted = process::interrupted()?;
        let attaching = AttachOptions {
            redirect_port: args.redirect_port.map(NonZeroU16::get),
            fail: args.fail,
        };
        let (attachment, is_new) = attach(&args.name.name, key, args.carrier, &attaching)?;
        let options = CarrierOptions {
            forwards: !args.gateway.is_empty(),
            destinations: Some(client.destinations(&host)?.with_entries(args.gateway)),
            host,
            listen,
            default_port: DEFAULT_PORT,
            plain_ip: args.plain.map(|listen| PlainIpOptions { listen }),
            identity,
            trust,
            paths,
            cipher: client.cipher(),
            carrier: args.carrier,
            served,
            captured: Captured::Mapped,
        };
        let carrier = Carrier::start(options, attachment).inspect_err(|_| {
            if is_new {
                // It has no connections yet; what the start failed of is the error to report.
                let _ = holder::down(&args.name.name.holder());
            }
        })?;
        let address = carrier.local_addr().to_string();
        let plain_ip = carrier.plain_ip_addr().map(|address| address.to_string());
        let (ready, is_json) = (carrier.ready(), args.json);
        let announced = async {
            ready.await;
            match is_json {
                true => print::json(&json!({
                    "listening": address,
                    "plain_ip": plain_ip,
                    "key": key.to_string(),
                    "metrics": metrics_address,
                }))?,
                false => {
                    outln!("up at {address}\nkey {key}");
                    if let Some(address) = plain_ip {
                        outln!("on plain IP at {address}");
                    }
                    if let Some(address) = metrics_address {
                        outln!("metrics at http://{address}/metrics");
                    }
                }
            }
            notify(READY).doing("notifying systemd")?;
            std::future::pending().await
        };
        let (name, metrics_of) = (args.name.name.clone(), carrier.reporter());
        let metered = async {
            match metrics {
                Some(listener) => report::serve_metrics(listener, name, metrics_of).await,
                None => std::future::pending().await,
            }
        };
        let socket = args.name.name.carrier();
        let reporter = carrier.reporter();
        let busy = busy::apply(carrier.busy_poll(), args.busy_poll);
        let mut carried = pin!(carrier.run());
        tokio::select! {
            ended = &mut carried => Ok(ended?),
            failed = announced => failed,
            served = report::serve(reporter, &socket) => served,
            never = busy => match never {},
            () = metered => Err(Failure::job("metrics are not served any more")),
            () = interrupted => {
                // An orderly end; the holder survives only a carrier that is killed. It has the
                // carrier end.
                let holder = args.name.name.holder();
                let down = spawn_blocking(move || holder::down(&holder));
                let (ended, down) = tokio::join!(carried, down);
                down.doing("taking the shim down")??;
                Ok(ended?)
            }
        }
    })
}
