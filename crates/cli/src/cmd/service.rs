//! The services of an AS, and the processes that hawser starts for itself.

mod startup;

use std::convert::Infallible;
use std::fmt::Display;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::{Subcommand, ValueEnum};
use hawser_control::{Control, Reloader};
use hawser_endhost::responder;
use hawser_keys::PeerKey;
use hawser_perf::plain::{self, Plain};
use hawser_router::{Options, Router, Signals};
use hawser_shim::choice::CarrierKind;
use hawser_topology::{AsDir, AsTopology};
use tokio::signal::unix::Signal;

use super::quantity::lifetime;
use super::shim::{self, ShimName};
use super::{files, print, process};
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln};

#[derive(Subcommand)]
pub enum RouterCommand {
    /// Run until SIGINT or SIGTERM; on SIGHUP go over to a changed topology.json and keys
    Run {
        /// The AS's folder, with topology.json, keys/ and links.json
        dir: PathBuf,
        /// The router's name in topology.json, where the AS has several
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
        /// Threads that forward packets; each flow stays in one of them
        #[arg(long, value_name = "N", default_value = "1",
            value_parser = clap::value_parser!(u16).range(1..).try_map(NonZeroU16::try_from))]
        threads: NonZeroU16,
        /// Answer packets above the MTU that topology.json announces for a link with "packet too
        /// big"; otherwise they are forwarded, as fragments where the network below needs it
        #[arg(long)]
        enforce_mtu: bool,
        /// Answer SCMP echo requests to this host (UDP 30041), where no control service does
        #[arg(long)]
        echo: bool,
        /// End with the process that started this one, whose number this is
        #[arg(long, value_name = "PID", hide = true)]
        pid: Option<i32>,
    },
}

#[derive(Subcommand)]
pub enum ControlCommand {
    /// Run until SIGINT or SIGTERM; on SIGHUP read the files of the network and of its ASes again
    Run {
        /// The AS's folder, inside the folder of its network
        dir: PathBuf,
        /// Do not answer SCMP echo requests to this host (UDP 30041)
        #[arg(long)]
        no_echo: bool,
        /// Do not give hosts what they need to join the AS (HTTP, port 8041 of the control service's
        /// address)
        #[arg(long)]
        no_bootstrap: bool,
        /// Lifetime of path segments, 2s to 24h; 6h when not given
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        segment_lifetime: Option<Duration>,
        /// Answer with the segments in this file, or in the parts in this folder, which a coordinator
        /// made, not with those of the network around the folder
        #[arg(long, value_name = "PATH", conflicts_with = "segment_lifetime")]
        segments: Option<PathBuf>,
        /// Serve the daemon API at this IP:PORT too, beside 127.0.0.1:30255: for other hosts of the AS
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
        /// End with the process that started this one, whose number this is
        #[arg(long, value_name = "PID", hide = true)]
        pid: Option<i32>,
    },
}

#[derive(Subcommand)]
pub enum InternalCommand {
    /// Holds the namespaces of a lab
    LabSupervisor { dir: PathBuf },
    /// Holds the connections of a shim, for the host with a key
    ShimHolder {
        name: ShimName,
        key: PeerKey,
        carrier: CarrierKind,
        /// Where captured connections arrive; 0 for any port
        port: u16,
    },
    /// Gives plain IP of an AS of a lab the delay, jitter and loss of links
    Emulator { dir: PathBuf },
    /// Sends UDP at a rate (bit/s) for a time (ms)
    CrossTraffic {
        from: IpAddr,
        to: IpAddr,
        rate: u64,
        millis: u64,
    },
    /// Receives a baseline over plain IP: prints its address, then what arrived
    PlainReceive { kind: PlainKind, listen: SocketAddr },
    /// Sends a baseline over plain IP for a time (ms): prints what was sent
    PlainSend {
        kind: PlainKind,
        to: SocketAddr,
        millis: u64,
        /// Bytes of payload in each datagram
        #[arg(default_value_t = 1472)]
        payload: u16,
    },
    /// Measures the round trip to a host over plain IP: prints it (s)
    PlainRoundTrip { to: IpAddr },
    /// Answers each byte of TCP connections with one: prints its address
    PlainAnswer { listen: SocketAddr },
    /// Connects by TCP to what answers, several times: prints how long each took (s)
    PlainSetUp { to: SocketAddr, count: u16 },
    /// Sends single bytes to what answers, after some that do not count: prints `ready`, and for a line on
    /// standard input how long each took (s); the connection ends with standard input
    PlainDialogue {
        to: SocketAddr,
        before: u32,
        count: u32,
    },
}

/// A baseline over plain IP.
#[derive(Clone, Copy, ValueEnum)]
pub enum PlainKind {
    Udp,
    Tcp,
    Tls,
}

impl PlainKind {
    fn with_payload(self, payload: u16) -> Plain {
        match self {
            Self::Udp => Plain::Udp { payload },
            Self::Tcp => Plain::Tcp,
            Self::Tls => Plain::Tls,
        }
    }
}

/// Runs `hawser router run`.
pub fn router(command: RouterCommand) -> Result<(), Failure> {
    let RouterCommand::Run {
        dir,
        id,
        threads,
        enforce_mtu,
        echo,
        pid,
    } = command;
    process::end_with(pid)?;
    files::check_as_folder(&dir)?;
    // Before any thread is started: threads inherit it.
    let signals = Signals::block().doing("waiting for signals")?;
    let dir = AsDir::new(dir);
    let options = Options::default()
        .with_threads(threads)
        .with_enforced_mtu(enforce_mtu);
    let router = Router::open(&dir, id.as_deref(), &options)?;
    if echo {
        let (host, runtime) = (any_host(&dir.topology()?), process::small_runtime()?);
        let thread = std::thread::Builder::new().name("echo".to_owned());
        let spawned = thread.spawn(move || runtime.block_on(answer_echoes(host)));
        spawned.map(drop).doing("starting a thread")?;
    }
    startup::forget();
    Ok(router.run(&signals)?)
}

/// Answers echo requests to the hosts at `ip`. The data plane fixes the port: routers deliver echo
/// requests there. A dispatcher, or another service of the AS, that has it answers them itself: it is
/// tried again in case that one ends.
async fn answer_echoes(ip: IpAddr) -> Infallible {
    const RETRY: Duration = Duration::from_secs(1);
    let mut is_reported = false;
    loop {
        let Err(error) = responder::run((ip, responder::PORT).into()).await;
        if !std::mem::replace(&mut is_reported, true) {
            tracing::warn!("{error}");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Runs `hawser control run`.
pub fn control(command: ControlCommand) -> Result<(), Failure> {
    let ControlCommand::Run {
        dir,
        no_echo,
        no_bootstrap,
        segment_lifetime,
        segments,
        listen,
        pid,
    } = command;
    process::end_with(pid)?;
    files::check_as_folder(&dir)?;
    let dir = AsDir::new(dir);
    process::small_runtime()?.block_on(async {
        let hangups = process::hangups()?;
        let stop = process::interrupted()?;
        let control = match &segments {
            Some(segments) => Control::bind_published(&dir, segments).await?,
            None => Control::bind(&dir, segment_lifetime).await?,
        };
        let control = match listen {
            Some(address) => control.with_daemon_at(address).await?,
            None => control,
        };
        let control = match no_bootstrap {
            true => control,
            false => control.with_bootstrap().await,
        };
        let host = any_host(&dir.topology()?);
        startup::forget();
        let reloaded = reload_on(hangups, control.reloader());
        let echoes = async {
            match no_echo {
                true => pending().await,
                false => answer_echoes(host).await,
            }
        };
        tokio::select! {
            ended = control.run(stop) => Ok(ended?),
            never = echoes => match never {},
            never = reloaded => match never {},
        }
    })
}

/// Has the control service read its files again at each SIGHUP.
async fn reload_on(mut hangups: Signal, reloader: Reloader) -> Infallible {
    while hangups.recv().await.is_some() {
        match reloader.reload().await {
            Ok(()) => tracing::info!("SIGHUP: the files are read again"),
            Err(error) => {
                tracing::error!("SIGHUP changed nothing, the service goes on as before: {error}");
            }
        }
    }
    pending().await
}

/// The unspecified address of the AS's address family: hosts receive packets from its border
/// routers.
fn any_host(topology: &AsTopology) -> IpAddr {
    let mut routers = topology.border_routers.values();
    match routers.any(|router| router.internal_addr.is_ipv6()) {
        // Also receives IPv4, unless the system is configured otherwise.
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Runs `hawser internal`.
pub fn internal(command: InternalCommand) -> ExitCode {
    match command {
        InternalCommand::LabSupervisor { dir } => {
            let code = hawser_lab::supervise(&dir);
            // Removes the folders of the session that the lab belonged to, if that was killed.
            hawser_experiments::sweep();
            code
        }
        InternalCommand::ShimHolder {
            name,
            key,
            carrier,
            port,
        } => report(shim::hold(&name, key, carrier, port)),
        InternalCommand::Emulator { dir } => {
            let Err(error) = hawser_lab::emulate(&AsDir::new(dir));
            report(Err(error))
        }
        InternalCommand::CrossTraffic {
            from,
            to,
            rate,
            millis,
        } => {
            let time = Duration::from_millis(millis);
            report(hawser_experiments::send_cross_traffic(from, to, rate, time))
        }
        InternalCommand::PlainReceive { kind, listen } => {
            let kind = kind.with_payload(0);
            let received = plain::receive(kind, listen, |at| outln!("{at}"));
            report(received.map_err(Failure::job).and_then(|r| print::json(&r)))
        }
        InternalCommand::PlainSend {
            kind,
            to,
            millis,
            payload,
        } => {
            let time = Duration::from_millis(millis);
            let sent = plain::send(kind.with_payload(payload), to, time);
            report(sent.map_err(Failure::job).and_then(|s| print::json(&s)))
        }
        InternalCommand::PlainRoundTrip { to } => {
            let time = plain::round_trip(to).map_err(Failure::job);
            report(time.and_then(|time| print::json(&time.as_secs_f64())))
        }
        InternalCommand::PlainAnswer { listen } => {
            let ended = plain::answer(listen, |at| outln!("{at}"));
            report(ended.map(|never| match never {}).map_err(Failure::job))
        }
        InternalCommand::PlainSetUp { to, count } => {
            let times = plain::set_up(to, count).map_err(Failure::job);
            report(times.and_then(|times| print::json(&times)))
        }
        InternalCommand::PlainDialogue { to, before, count } => report(dialogue(to, before, count)),
    }
}

/// Runs `hawser internal plain-dialogue`.
fn dialogue(to: SocketAddr, before: u32, count: u32) -> Result<(), Failure> {
    let wait = || {
        let read = io::stdin().read_line(&mut String::new());
        read.map(drop).doing("waiting for the measurement")
    };
    let mut dialogue = plain::Dialogue::connect(to).map_err(Failure::job)?;
    dialogue.round_trips(before).map_err(Failure::job)?;
    outln!("ready");
    wait()?;
    let times = dialogue.round_trips(count).map_err(Failure::job)?;
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    outln!("{}", serde_json::json!(seconds));
    wait()
}

/// The exit code of a process that hawser started; prints why it failed.
fn report(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            errln!("hawser: {error}");
            ExitCode::FAILURE
        }
    }
}
