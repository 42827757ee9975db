//! `hawser as`: one AS on this machine, from the archive of its coordinator.

mod health;
mod limits;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use hawser_bundle::{Bundle, LARGEST_ARCHIVE, Role};
use hawser_http::Listener;
use hawser_kernel::bind::Refused;
use hawser_limit::{Enforcer, KernelEnforcer, Limiter, Limits, Scope};
use hawser_node::{Event, Folder, Health, HealthReport, HealthSocket, Options, Substitutes};
use hawser_topology::{IsdAsn, as_folder};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::health::HealthArgs;
use self::limits::LimitsOfUser;
use self::report::{Joined, show};
use super::{files, folders, headings, init, print, process};
use crate::failure::{Doing, Failure};

/// How long it is held back that a service ended.
const HOLD: Duration = Duration::from_millis(200);

/// The environment variable in place of `--address`: that of a pod comes by the Downward API of Kubernetes
/// (`status.podIPs`).
const ADDRESS: &str = "HAWSER_ADDRESS";

#[derive(Subcommand)]
pub enum AsCommand {
    /// Run one AS on this machine, from the archive of its coordinator
    Join(JoinArgs),
    /// Ask the AS that runs on this machine whether it is alive, or ready
    Health(HealthArgs),
}

#[derive(clap::Args)]
pub struct JoinArgs {
    /// The archive of the AS, a tar.gz that its coordinator gives its owner
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The folder of the AS, which may be that of an earlier version of it; for root
    /// /var/lib/hawser/as/AS, else hawser/as/AS in $XDG_DATA_HOME or ~/.local/share, when not given
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The segments of the network where no coordinator sends them: a file, or a folder of its
    /// parts, as `lab export` writes them; read again when they change
    #[arg(long, value_name = "PATH")]
    pub segments: Option<PathBuf>,
    /// Answer HTTP at this address: /live while this runs, /ready while all links are up and there are
    /// paths; 503 and what is missing otherwise
    #[arg(long, value_name = "ADDR", value_parser = probed_at)]
    pub listen: Option<SocketAddr>,
    /// The address that links get when this machine lacks theirs, as after DHCP: one of each family,
    /// or `auto` for that of the route to the neighbour. When not given: `auto`, but only for an
    /// address that was there since this runs
    #[arg(long = "address", value_name = "IP", value_delimiter = ',', value_parser = own_address,
        help_heading = headings::RARE, hide_short_help = true)]
    pub addresses: Vec<OwnAddress>,
    /// Unpack the archive, and end without running the AS
    #[arg(long)]
    pub unpack: bool,
    /// Print JSON: what was joined, then one line for each event
    #[arg(long)]
    pub json: bool,
}

/// Runs `hawser as`.
pub fn run(command: AsCommand) -> Result<ExitCode, Failure> {
    match command {
        // It starts processes, and does not know those of others.
        AsCommand::Join(args) if !args.unpack && init::is_init() => init::run(),
        AsCommand::Join(args) => join(args).map(|()| ExitCode::SUCCESS),
        AsCommand::Health(args) => health::run(&args),
    }
}

/// Reads an address at which probes are answered.
fn probed_at(text: &str) -> Result<SocketAddr, String> {
    let wrong = |_| "write IP:PORT, for example 0.0.0.0:8080".to_owned();
    text.parse().map_err(wrong)
}

/// An address of `--address`; `None` for that of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnAddress(Option<IpAddr>);

fn own_address(text: &str) -> Result<OwnAddress, String> {
    match text.trim() {
        "auto" => Ok(OwnAddress(None)),
        ip => (ip.parse().map(|ip| OwnAddress(Some(ip))))
            .map_err(|_| "write an IP address, for example 192.0.2.1, or auto".to_owned()),
    }
}

/// What takes the place of addresses that this machine lacks: by `--address`, or else by the environment
/// variable.
fn substitutes(given: Vec<OwnAddress>, variable: Option<&str>) -> Result<Substitutes, Failure> {
    let all = match variable.map(str::trim) {
        Some(text) if given.is_empty() && !text.is_empty() => {
            let read: Result<Vec<_>, _> = text.split(',').map(own_address).collect();
            read.map_err(|error| Failure::usage(format_args!("{ADDRESS} is {text:?}: {error}")))?
        }
        _ => given,
    };
    let always = !all.is_empty();
    let given: Vec<IpAddr> = all.into_iter().filter_map(|address| address.0).collect();
    let count = |of: fn(&IpAddr) -> bool| given.iter().filter(|ip| of(ip)).count();
    match count(IpAddr::is_ipv4) > 1 || count(IpAddr::is_ipv6) > 1 {
        true => Err(Failure::usage(
            "as join: --address: give at most one IPv4 and one IPv6 address",
        )),
        false => Ok(Substitutes { given, always }),
    }
}

/// What all addresses, `[::]`, are where the kernel has no IPv6, as the error of the socket says.
fn without_ipv6(address: SocketAddr, error: &io::Error) -> Option<SocketAddr> {
    let is_all = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let is_missing = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    (is_all && is_missing).then(|| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()))
}

/// The socket on which probes are answered, which is bound before the AS is announced.
async fn bind_health(address: SocketAddr) -> Result<Listener, Failure> {
    let mut listener = Listener::bind(address, None).await;
    if let Err(error) = &listener
        && let Some(instead) = without_ipv6(address, error)
    {
        listener = Listener::bind(instead, None).await;
    }
    listener.map_err(|error| {
        let refused = Refused::tcp(address, &error);
        Failure::job(format_args!("cannot listen at {address}: {refused}"))
    })
}

/// Answers probes, without end. An answer that differs from the one before is an event, too, as not all
/// programs that probe show it.
async fn serve_health(listener: Listener, health: Health, events: UnboundedSender<Event>) {
    let (told, _) = watch::channel(None);
    let (told, events) = (Arc::new(told), Arc::new(events));
    let read = move || {
        let (health, told, events) = (health.clone(), Arc::clone(&told), Arc::clone(&events));
        async move {
            let report = health.read().await;
            let HealthReport { ready, reasons, .. } = report.clone();
            let answer = Some((ready, reasons.clone()));
            if told.send_replace(answer.clone()) != answer {
                // Without a receiver nobody wants to know.
                let _ = events.send(Event::Health { ready, reasons });
            }
            (report.ready, report)
        }
    };
    listener.serve_health(read).await;
}

fn join(args: JoinArgs) -> Result<(), Failure> {
    let JoinArgs {
        archive,
        state,
        segments,
        listen,
        addresses,
        unpack,
        json,
    } = args;
    let addresses = substitutes(addresses, std::env::var(ADDRESS).ok().as_deref())?;
    files::check_input(&archive)?;
    let segments = match segments {
        Some(path) => {
            files::check_input(&path)?;
            // Services have other working folders.
            Some(std::path::absolute(&path).doing(path.display())?)
        }
        None => None,
    };
    let bundle = read(&archive)?;
    let (manifest, _) = bundle.check().doing(archive.display())?;
    let dir = match state {
        Some(dir) => dir,
        None => default_dir(manifest.isd_as)?,
    };
    let (folder, installed) = Folder::join(&dir, &bundle)?;
    // A newer version may be there already.
    let current = folder.current()?.unwrap_or(bundle);
    let paths = segments.clone().unwrap_or_else(|| folder.segments());
    let joined = Joined::new(&current, folder.path(), installed, paths)?;
    let announce = || match json {
        true => print::json(&joined),
        false => {
            joined.print();
            Ok(())
        }
    };
    if unpack {
        return announce();
    }
    let runtime = process::small_runtime()?;
    let stop = runtime.block_on(async { process::interrupted() })?;
    let listener = match listen {
        Some(address) => Some(runtime.block_on(bind_health(address))?),
        None => None,
    };
    let (reporter, health) = hawser_node::health();
    let socket = runtime.block_on(async { HealthSocket::bind(&folder) })?;
    announce()?;
    let (limiter, all_others) = (Limiter::open()?, Limits::default());
    let limits = KernelEnforcer::new(limiter, Scope::OwnDevices, all_others);
    let limits: Arc<dyn Enforcer<String>> = match current.manifest()?.role {
        Role::AttachmentPoint => Arc::new(limits),
        Role::User => Arc::new(LimitsOfUser::new(limits)),
    };
    let options = Options {
        program: process::program()?,
        limits: Some(limits),
        segments,
        addresses,
        health: Some(reporter),
    };
    runtime.block_on(async {
        process::survive_hangup()?;
        // A few for each service that ends, which starts again after a pause, and one for each change of readiness.
        let (sender, mut events) = unbounded_channel();
        let mut servers = JoinSet::new();
        servers.spawn(socket.serve(health.clone()));
        if let Some(listener) = listener {
            servers.spawn(serve_health(listener, health, sender.clone()));
        }
        let running = hawser_node::run(folder, options, sender, stop);
        tokio::pin!(running);
        // That a service ended may be why all ends: then it is said once.
        let mut held: Option<Event> = None;
        let ended = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if let Some(held) = held.take() {
                        show(&held, json)?;
                    }
                    match event {
                        Event::Ended { .. } => held = Some(event),
                        event => show(&event, json)?,
                    }
                }
                ended = &mut running => break ended,
                () = sleep(HOLD), if held.is_some() => {
                    if let Some(held) = held.take() {
                        show(&held, json)?;
                    }
                }
            }
        };
        while let Ok(event) = events.try_recv() {
            let is_reason = ended.is_err() && matches!(event, Event::Ended { .. });
            if !is_reason {
                show(&event, json)?;
            }
        }
        Ok(ended?)
    })
}

/// Reads an archive.
fn read(path: &Path) -> Result<Bundle, Failure> {
    let mut bytes = Vec::new();
    // One more byte shows that it is too long.
    let file = File::open(path);
    let read = file.and_then(|file| file.take(LARGEST_ARCHIVE + 1).read_to_end(&mut bytes));
    read.doing(path.display())?;
    Bundle::unpack(&bytes).doing(path.display())
}

/// The folder of an AS when none is named.
fn default_dir(isd_as: IsdAsn) -> Result<PathBuf, Failure> {
    Ok(folders::state("as")?.join(as_folder(isd_as)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_flag_or_else_of_the_variable() {
        let of = |given: &[&str], variable: Option<&str>| {
            let given = given.iter().map(|text| own_address(text).unwrap());
            substitutes(given.collect(), variable).map(|found| {
                let given: Vec<String> = found.given.iter().map(ToString::to_string).collect();
                (given.join(" "), found.always)
            })
        };
        let is = |ips: &str, always| (ips.to_owned(), always);
        assert_eq!(of(&[], None).unwrap(), is("", false));
        assert_eq!(of(&[], Some("")).unwrap(), is("", false));
        assert_eq!(of(&[], Some("auto")).unwrap(), is("", true));
        let both = of(&[], Some("10.0.0.1, fd00::1")).unwrap();
        assert_eq!(both, is("10.0.0.1 fd00::1", true));
        assert_eq!(
            of(&["10.0.0.2"], Some("10.0.0.1")).unwrap(),
            is("10.0.0.2", true)
        );
        assert!(of(&[], Some("eth0")).is_err());
        assert!(of(&[], Some("10.0.0.1,10.0.0.2")).is_err());
    }

    #[test]
    fn all_addresses_are_those_of_ipv4_where_there_is_no_ipv6() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let missing = io::Error::from(rustix::io::Errno::AFNOSUPPORT);
        let other = io::Error::from(rustix::io::Errno::ADDRINUSE);
        let all = at("[::]:8042");
        assert_eq!(without_ipv6(all, &missing), Some(at("0.0.0.0:8042")));
        assert_eq!(without_ipv6(all, &other), None);
        assert_eq!(without_ipv6(at("[::1]:8042"), &missing), None);
    }
}
