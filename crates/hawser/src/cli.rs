//! The arguments of every command.

mod bench;
mod host;
mod simulate;
mod torrent;

pub use bench::*;
use clap::{Args, Parser, Subcommand, ValueEnum};
use hawser_topology::IsdAsn;
pub use host::*;
pub use simulate::*;
use std::{path::PathBuf, time::Duration};
pub use torrent::*;

/// Moves data over every useful path of a SCION network at once.
#[derive(Parser)]
#[command(name = "hawser", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the paths to an AS
    Paths(PathsArgs),
    /// Send SCMP echo requests to a host
    Ping(PingArgs),
    /// Ask the border routers on a path who they are
    Traceroute(TracerouteArgs),
    /// Make and show .torrent files
    Torrent(TorrentArgs),
    /// Serve a file or folder to others
    Seed(SeedArgs),
    /// Download a torrent, over several paths at once
    Get(GetArgs),
    /// Run a SCION network on this machine
    Lab(LabArgs),
    /// Show multipath at work: network, seeder and downloads in one go
    Demo(DemoArgs),
    /// Repeat the papers' experiments
    Bench(BenchArgs),
    /// Compute how many leechers share a network, without bringing it up
    Simulate(SimulateArgs),
    /// Run the border router of an AS
    Router(RouterArgs),
    /// Run the control service and daemon of an AS
    Control(ControlArgs),
    /// What hawser starts for itself
    #[command(hide = true)]
    Internal(InternalArgs),
}

#[derive(Args)]
pub struct LabArgs {
    #[command(subcommand)]
    pub command: LabCommand,
}

#[derive(Args)]
pub struct LabName {
    /// The lab's name, when several run at once
    #[arg(long, value_name = "NAME", default_value = hawser_lab::DEFAULT_NAME, value_parser = lab_name)]
    pub name: String,
}

#[derive(Subcommand)]
pub enum LabCommand {
    /// Bring a network up
    Up {
        /// A .topo file, or a ready topology: fig4, fig7a, fig9
        #[arg(value_name = "FILE")]
        topology: String,
        /// Leave the border routers of this AS to be run by hand, in `lab exec`; `all` for every
        /// AS; may be given several times
        #[arg(long, value_name = "AS", value_parser = some_as)]
        no_router: Vec<SomeAs>,
        /// Leave the control service and daemon of this AS to be run by hand, likewise
        #[arg(long, value_name = "AS", value_parser = some_as)]
        no_control: Vec<SomeAs>,
        /// How long path segments live, 2s to 24h; 6h when not given
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        segment_lifetime: Option<Duration>,
        /// Take the network down when this process ends, however it ends: `--owner $$` in a script
        #[arg(long, value_name = "PID")]
        owner: Option<u32>,
        #[command(flatten)]
        lab: LabName,
    },
    /// Show what runs
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        lab: LabName,
    },
    /// Run a command on a host of an AS
    Exec {
        /// The AS
        isd_as: IsdAsn,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
        #[command(flatten)]
        lab: LabName,
    },
    /// Change links
    Link {
        #[command(subcommand)]
        command: LinkCommand,
    },
    /// End services of an AS and start them again
    Restart {
        /// The AS
        isd_as: IsdAsn,
        /// Only its border routers, or its control service and daemon
        #[arg(value_enum)]
        service: Option<ServiceArg>,
        /// After `router`: only the one of this name in topology.json
        #[arg(value_name = "NAME")]
        router: Option<String>,
        #[command(flatten)]
        lab: LabName,
    },
    /// List the labs that run
    List,
    /// Take a network down
    Down {
        #[command(flatten)]
        lab: LabName,
    },
}

/// A kind of service of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceArg {
    Router,
    Control,
}

#[derive(Subcommand)]
pub enum LinkCommand {
    /// Change what a link behaves like, in both directions
    Set {
        /// One end of the link, for example 1-ff00:0:110#1
        #[arg(value_name = "A#IF")]
        interface: hawser_path::Interface,
        /// Limit of Ethernet frames, for example 10mbit; `none` for no limit
        #[arg(long, value_parser = rate)]
        rate: Option<RateArg>,
        /// One-way delay, for example 20ms
        #[arg(long, value_parser = duration)]
        delay: Option<Duration>,
        /// How far the delay of a packet may lie from it, for example 2ms
        #[arg(long, value_parser = duration)]
        jitter: Option<Duration>,
        /// Share of packets lost, for example 0.1%
        #[arg(long, value_parser = loss)]
        loss: Option<f64>,
        /// Time that a full queue at the limit takes to drain, for example 50ms
        #[arg(long, value_parser = duration)]
        queue: Option<Duration>,
        /// Let packets pass again
        #[arg(long, conflicts_with = "down")]
        up: bool,
        /// Let no packet pass
        #[arg(long)]
        down: bool,
        #[command(flatten)]
        lab: LabName,
    },
}

#[derive(Args)]
pub struct DemoArgs {
    /// fig7a (disjoint against the two shortest paths) or fig4 (two links against one)
    #[arg(long, value_name = "NAME", default_value = "fig7a", value_parser = ["fig7a", "fig4"])]
    pub topology: String,
    /// Transfer this file
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    pub file: Option<PathBuf>,
    /// Transfer a made-up file of this size, for example 32MiB
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Give every limited link this limit instead, or `none`
    #[arg(long, value_parser = rate)]
    pub rate: Option<RateArg>,
    /// Measure plain TCP with iperf3 over one link of the same network too (fig4)
    #[arg(long)]
    pub iperf3: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RouterArgs {
    #[command(subcommand)]
    pub command: RouterCommand,
}

#[derive(Subcommand)]
pub enum RouterCommand {
    /// Run until told to stop
    Run {
        /// The AS's folder, with topology.json, keys/ and links.json
        dir: PathBuf,
        /// The router's name in topology.json, where the AS has several
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
    },
}

#[derive(Args)]
pub struct ControlArgs {
    #[command(subcommand)]
    pub command: ControlCommand,
}

#[derive(Subcommand)]
pub enum ControlCommand {
    /// Run until told to stop
    Run {
        /// The AS's folder, inside the folder of its network
        dir: PathBuf,
        /// Do not answer SCMP echo requests to this host (UDP 30041)
        #[arg(long)]
        no_echo: bool,
        /// How long path segments live, 2s to 24h; 6h when not given
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        segment_lifetime: Option<Duration>,
    },
}

#[derive(Args)]
pub struct InternalArgs {
    #[command(subcommand)]
    pub command: InternalCommand,
}

#[derive(Subcommand)]
pub enum InternalCommand {
    /// Holds the namespaces of a lab
    LabSupervisor { dir: PathBuf },
    /// Sends UDP at a rate (bit/s) for a time (ms)
    CrossTraffic {
        from: std::net::IpAddr,
        to: std::net::IpAddr,
        rate: u64,
        millis: u64,
    },
}

/// A rate, or `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateArg(pub Option<u64>);

/// One AS, or every AS of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SomeAs {
    /// This one.
    One(IsdAsn),
    /// `all`.
    All,
}

fn lab_name(text: &str) -> Result<String, String> {
    hawser_lab::check_name(text)
        .map(|()| text.to_owned())
        .map_err(|e| e.to_string())
}

fn some_as(text: &str) -> Result<SomeAs, String> {
    match text {
        "all" => Ok(SomeAs::All),
        _ => text
            .parse()
            .map(SomeAs::One)
            .map_err(|_| format!("{text:?} is no AS: write for example 1-ff00:0:110, or all")),
    }
}

fn rate(text: &str) -> Result<RateArg, String> {
    if text == "none" {
        return Ok(RateArg(None));
    }
    hawser_topology::parse_rate(text)
        .map(|rate| RateArg(Some(rate)))
        .map_err(|e| e.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    hawser_topology::parse_duration(text).map_err(|e| e.to_string())
}

/// Reads a life of segments: as [`duration`], and in minutes and hours.
fn lifetime(text: &str) -> Result<Duration, String> {
    use hawser_control::{MAX_LIFETIME, MIN_LIFETIME};
    let whole = |number: &str, seconds: u64| {
        let number: u64 = number.parse().ok()?;
        number.checked_mul(seconds).map(Duration::from_secs)
    };
    let time = match (text.strip_suffix('h'), text.strip_suffix('m')) {
        (Some(hours), _) => whole(hours, 3600),
        (_, Some(minutes)) => whole(minutes, 60),
        _ => Some(duration(text)?),
    };
    time.filter(|time| (MIN_LIFETIME..=MAX_LIFETIME).contains(time))
        .ok_or_else(|| format!("segments cannot live for {text:?}: give 2s to 24h"))
}

fn loss(text: &str) -> Result<f64, String> {
    hawser_topology::parse_loss(text).map_err(|e| e.to_string())
}

/// Reads a number of bytes: `32MiB`, `32MB`, `32M` (as `dd` does: MiB) or bare.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: write for example 64KiB, 32MiB or 5GB");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let scale: u64 = match text[end..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(scale)
        .filter(|&n| n > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(size("32MiB"), Ok(32 << 20));
        assert_eq!(size("5GB"), Ok(5_000_000_000));
        assert_eq!(size("1234"), Ok(1234));
        for wrong in ["", "0", "MiB", "-1", "3 apples", "99999999999999GB"] {
            assert!(size(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}
