//! The arguments of every command.

mod bench;
mod host;
mod lab;
mod parse;
mod seeding;
mod simulate;
mod torrent;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub use self::bench::*;
pub use self::host::*;
pub use self::lab::*;
pub use self::simulate::*;
pub use self::torrent::*;

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
    /// Print a script by which a shell completes hawser's commands
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
    /// What hawser starts for itself
    #[command(hide = true)]
    Internal(InternalArgs),
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
    /// Measure plain TCP with iperf3 too, over one link of the same network: with --topology fig4
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
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Write hawser.1, hawser-get.1 and so on into this folder, which is made where there is none
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Overwrite pages that are there
    #[arg(long, requires = "output")]
    pub force: bool,
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

/// Reads a time that may be long: `30m`, `1.5h`, `7d`, and `90s` and `500ms` as [`duration`].
fn long_duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let mut units = UNITS.into_iter();
    let number = units.find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let time = number
        .filter(|(text, _)| digits(text))
        .and_then(|(text, scale)| {
            let number: f64 = text.parse().ok()?;
            Duration::try_from_secs_f64(number * scale).ok()
        });
    time.ok_or_else(|| format!("{text:?} is not a time: write for example 30m, 1.5h or 90s"))
}

/// Reads a life of segments.
fn lifetime(text: &str) -> Result<Duration, String> {
    use hawser_control::{MAX_LIFETIME, MIN_LIFETIME};
    Some(long_duration(text)?)
        .filter(|time| (MIN_LIFETIME..=MAX_LIFETIME).contains(time))
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
    fn long_times_have_a_unit() {
        let seconds = |text| long_duration(text).map(|time| time.as_secs_f64());
        for (text, time) in [("30m", 1800.0), ("1.5h", 5400.0), ("7d", 604_800.0)] {
            assert_eq!(seconds(text), Ok(time));
        }
        assert_eq!(seconds("7200s"), Ok(7200.0));
        assert_eq!(seconds("20ms"), Ok(0.02));
        for wrong in [
            "",
            "m",
            "30",
            "-1m",
            "1e9h",
            "30 m",
            "1h30m",
            "1.2.3s",
            "9999999999999999999d",
        ] {
            assert!(seconds(wrong).is_err(), "{wrong:?} was accepted");
        }
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
