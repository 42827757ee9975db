//! The arguments of `hawser lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use hawser_topology::IsdAsn;

use super::address::one_as;
use super::quantity::{RateArg, duration, lifetime, loss, rate_or_none};

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
        /// Leave the control service and daemon of this AS to be run by hand, as --no-router does
        #[arg(long, value_name = "AS", value_parser = some_as)]
        no_control: Vec<SomeAs>,
        /// How long path segments live, 2s to 24h; 6h when not given
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        segment_lifetime: Option<Duration>,
        /// Take the network down when this process ends, however it ends: `--owner $$` in a script
        #[arg(long, value_name = "PID")]
        owner: Option<u32>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        lab: LabName,
    },
    /// Show the processes and links of a network
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        lab: LabName,
    },
    /// Run a command on a host of an AS
    Exec {
        /// The AS, for example 1-ff00:0:110
        #[arg(value_parser = one_as)]
        isd_as: IsdAsn,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
        #[command(flatten)]
        lab: LabName,
    },
    /// Run a shell on a host of an AS
    Shell {
        /// The AS, for example 1-ff00:0:110
        #[arg(value_name = "AS", value_parser = one_as)]
        isd_as: IsdAsn,
        #[command(flatten)]
        lab: LabName,
    },
    /// Print the logs of the routers and control services, in the order of time
    Logs(LogsArgs),
    /// Record what crosses a link, in both directions, in a file for Wireshark
    Capture(CaptureArgs),
    /// Draw the map of the network with rates and state
    Graph(GraphArgs),
    /// Write the network as it is now to a .topo file
    Save {
        /// The file; `-` for standard output
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
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
        /// The AS, for example 1-ff00:0:110
        #[arg(value_name = "AS", value_parser = one_as)]
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
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
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

#[derive(Args)]
pub struct LogsArgs {
    /// Of this AS only, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    pub isd_as: Option<IsdAsn>,
    /// Print new lines until the lab is taken down
    #[arg(long, short)]
    pub follow: bool,
    /// Only the last LINES lines of each log
    #[arg(long, short = 'n', value_name = "LINES")]
    pub tail: Option<usize>,
    /// Print a JSON object a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub lab: LabName,
}

#[derive(Args)]
pub struct CaptureArgs {
    /// The end of the link to capture at, for example 1-ff00:0:110#1
    #[arg(value_name = "A#IF")]
    pub interface: hawser_path::Interface,
    /// The file to write, in pcapng format; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub write: PathBuf,
    /// Keep only the first BYTES bytes of each packet, for example 256: enough for the headers
    #[arg(long, short, value_name = "BYTES", default_value_t = hawser_lab::SNAP_LENGTH,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(hawser_lab::SNAP_LENGTH)))]
    pub snapshot_length: u32,
    /// End after N packets
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time, for example 10s
    #[arg(long, short = 'G', value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub lab: LabName,
}

#[derive(Args)]
pub struct GraphArgs {
    /// Draw it into this SVG file; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub svg: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "svg")]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub lab: LabName,
}

#[derive(Subcommand)]
pub enum LinkCommand {
    /// Change the properties of a link, in both directions
    Set {
        /// One end of the link, for example 1-ff00:0:110#1
        #[arg(value_name = "A#IF")]
        interface: hawser_path::Interface,
        /// Limit of Ethernet frames, for example 10mbit; `none` for no limit
        #[arg(long, value_parser = rate_or_none)]
        rate: Option<RateArg>,
        /// One-way delay, for example 20ms
        #[arg(long, value_parser = duration)]
        delay: Option<Duration>,
        /// Largest difference of a packet's delay from that, for example 2ms
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
