//! The arguments of commands that are a host in a SCION network.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hawser_endhost::{Bootstrap, ScionAddr};
use hawser_path::{AclEntry, Select, SelectError, Sequence};
use hawser_topology::IsdAsn;
use hawser_torrent::{PeerAddr, SelectBy};

use super::duration;
use super::seeding::SeedingArgs;

/// How this host gets into its network.
#[derive(Args)]
pub struct HostArgs {
    /// The SCION daemon: HOST:PORT, or `default` for 127.0.0.1:30255
    #[arg(long, value_name = "ADDR", value_parser = daemon)]
    pub sciond: Option<String>,
    /// A folder with topology.json, to do without a daemon
    #[arg(long, value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// This host's IP address in its AS
    #[arg(long, short, value_name = "IP", value_parser = local)]
    pub local: Option<IpAddr>,
}

impl HostArgs {
    /// The same, as the endhost takes it.
    pub fn bootstrap(&self) -> Bootstrap {
        Bootstrap {
            daemon: self.sciond.clone(),
            config_dir: self.config_dir.clone(),
            local: self.local,
        }
    }
}

/// How a report is printed.
#[derive(Args)]
pub struct FormatArgs {
    /// How to print it: human, json or yaml
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    format: Option<Format>,
    /// Short for --format json
    #[arg(long, short)]
    json: bool,
    /// Print no colours; there are none anyway where it is no terminal that reads
    #[arg(long)]
    pub no_color: bool,
}

impl FormatArgs {
    /// The format wanted.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.json {
            true => Format::Json,
            false => Format::Human,
        })
    }
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
    /// The same fields as YAML.
    Yaml,
}

/// Which of the paths to a host is taken.
#[derive(Args)]
pub struct ChoiceArgs {
    /// Use a path of this sequence of hops, for example '0* 1-ff00:0:110#2 0*'
    #[arg(long, value_name = "SEQUENCE")]
    pub sequence: Option<Sequence>,
    /// Use the path whose fingerprint begins like this
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint_prefix)]
    pub path: Option<String>,
    /// Ask which path to use
    #[arg(long, short)]
    pub interactive: bool,
    /// Let new paths be looked for
    #[arg(long)]
    pub refresh: bool,
    /// EPIC is not supported
    #[arg(long, hide = true)]
    pub epic: bool,
}

/// Which paths may be used at all, as seen from this host.
#[derive(Args)]
pub struct PolicyArgs {
    /// Use only paths that a policy keeps: a YAML or JSON file, and the name of one of several in
    /// it
    #[arg(long, value_name = "FILE[:NAME]")]
    pub policy: Option<String>,
    /// Use only paths that these allow, in order, for example '- 2-ff00:0:210' and then '+'
    #[arg(
        long,
        value_name = "ENTRY",
        allow_hyphen_values = true,
        conflicts_with = "policy"
    )]
    pub acl: Vec<AclEntry>,
    /// Use only paths of this sequence of hops, for example '0* 1-ff00:0:110#2 0*', besides what
    /// --policy or --acl says
    #[arg(long, value_name = "SEQUENCE")]
    pub sequence: Option<Sequence>,
}

/// How to choose among the paths that may be used.
#[derive(Args)]
pub struct SelectArgs {
    /// Take at most this many paths, to each peer if there are several [default: 4]
    #[arg(long, short = 'n', visible_aliases = ["max-paths", "max-connections-per-peer"], value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub paths: Option<u16>,
    /// How to choose among paths: shortest, latency, bandwidth, carbon, and one of disjoint[:K|:any] and spread:N% (each path keeps to its share, so a slow one slows the others) [default: disjoint]; a download then chooses here, not the uploader
    #[arg(long, value_name = "STRATEGY,...")]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a YAML or JSON file with lines such as
    /// '1-ff00:0:110: 12.5', or '1-ff00:0:110#2: 3' for an interface; where it says nothing, notes
    /// of ASes count
    #[arg(long, value_name = "FILE")]
    pub carbon: Option<PathBuf>,
}

#[derive(Args)]
pub struct PathsArgs {
    /// The destination AS, for example 1-ff00:0:110
    #[arg(value_name = "DST", value_parser = one_as)]
    pub destination: IsdAsn,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Tell which of them the flags of a download choose, in which order, and why the others are
    /// left
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Show at most this many; 0 for all [default: 10, or all with --explain]
    #[arg(long, short, value_name = "N")]
    pub maxpaths: Option<usize>,
    /// Let new paths be looked for
    #[arg(long, short)]
    pub refresh: bool,
    /// Do not find out which paths are alive
    #[arg(long)]
    pub no_probe: bool,
    /// Print everything known of each path
    #[arg(long, short)]
    pub extended: bool,
    /// How long it may take in all
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    /// EPIC is not supported
    #[arg(long, hide = true)]
    pub epic: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

#[derive(Args)]
pub struct PingArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// Stop after this many requests
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub count: Option<u16>,
    /// Time between requests, from 1ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// How long to wait for each reply
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub timeout: Duration,
    /// Bytes of data in each request
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    pub payload_size: u16,
    /// Bytes of each request's SCION packet, headers included
    #[arg(long, value_name = "N", conflicts_with = "payload_size")]
    pub packet_size: Option<u16>,
    /// Send requests as large as the path takes
    #[arg(long, conflicts_with_all = ["payload_size", "packet_size"])]
    pub max_mtu: bool,
    /// Choose among paths that are alive only
    #[arg(long)]
    pub healthy_only: bool,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

#[derive(Args)]
pub struct TracerouteArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// How long to wait for each answer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub timeout: Duration,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

#[derive(Args)]
pub struct SeedArgs {
    /// The .torrent file
    pub torrent: PathBuf,
    /// The file or folder that it describes
    pub path: PathBuf,
    /// Listen here: IP:PORT, or a SCION address of this AS; port 0 is any that routers deliver to
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    /// Serve IP peers too, by plain TCP at this address, for example 0.0.0.0:6881; port 0 is any
    /// that is free. Where no SCION network is found, IP peers are served alone, unless a flag that
    /// speaks of SCION is given
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    /// Serve IP peers alone: do not look for a SCION network
    #[arg(long, requires = "tcp", conflicts_with_all = SCION_FLAGS)]
    pub no_scion: bool,
    /// The side that chooses the paths of uploads: uploader, this side, which sees all its
    /// downloaders, or downloader [default: uploader]
    #[arg(long, value_name = "SIDE")]
    pub select_by: Option<SelectBy>,
    /// Which paths to downloaders come first: shortest, latency, bandwidth, carbon; all are apart
    /// from each other
    #[arg(long, value_name = "STRATEGY,...", value_parser = ranking)]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a file as `hawser get --help` tells
    #[arg(long, value_name = "FILE")]
    pub carbon: Option<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Do not try paths that share links with those given out
    #[arg(long)]
    pub no_sensing: bool,
    /// Tell of every path why it is used or not, also of those that are not
    #[arg(long, short)]
    pub verbose: bool,
    /// Print JSON: one object when listening, and with --verbose one whenever what becomes of a
    /// path changes
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

/// Flags of a seeder that mean nothing without a SCION network, as clap knows them.
const SCION_FLAGS: [&str; 11] = [
    "sciond",
    "config_dir",
    "local",
    "listen",
    "policy",
    "acl",
    "sequence",
    "select_by",
    "select",
    "carbon",
    "no_sensing",
];

impl SeedArgs {
    /// The first flag given that asks for a SCION network.
    pub fn scion_flag(&self) -> Option<&'static str> {
        let flags = [
            (self.host.sciond.is_some(), "--sciond"),
            (self.host.config_dir.is_some(), "--config-dir"),
            (self.host.local.is_some(), "--local"),
            (self.listen.is_some(), "--listen"),
            (self.policy.policy.is_some(), "--policy"),
            (!self.policy.acl.is_empty(), "--acl"),
            (self.policy.sequence.is_some(), "--sequence"),
            (self.select_by.is_some(), "--select-by"),
            (self.select.is_some(), "--select"),
            (self.carbon.is_some(), "--carbon"),
            (self.no_sensing, "--no-sensing"),
        ];
        let mut given = flags.into_iter().filter(|(given, _)| *given);
        given.next().map(|(_, flag)| flag)
    }
}

#[derive(Args)]
pub struct GetArgs {
    /// The .torrent file
    pub torrent: PathBuf,
    /// The folder to download into
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Overwrite files in the folder that are not the torrent's
    #[arg(long)]
    pub force: bool,
    /// A peer, for example 1-ff00:0:110,10.0.1.1:31000, or 10.0.1.1:6881 for one over plain IP; may
    /// be given several times
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    pub peer: Vec<PeerAddr>,
    /// Let IP peers connect, by plain TCP at this address, for example 0.0.0.0:6881; port 0 is any
    /// that is free
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    /// Let SCION peers connect here, as they can at any port otherwise: IP:PORT, or a SCION address
    /// of this AS
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    #[command(flatten)]
    pub seeding: SeedingArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// The side that chooses among paths, also those to downloaders: uploader, which sees all its
    /// downloaders, or downloader [default: uploader, or downloader with --select]
    #[arg(long, value_name = "SIDE")]
    pub select_by: Option<SelectBy>,
    /// Tell of every path why it is used or not, also of those that are not
    #[arg(long, short)]
    pub verbose: bool,
    /// Let a path wait when it carries less than this percentage of what the best one carries; not
    /// with spread
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub min_weight: f64,
    /// Weigh paths every so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub time_slot: u64,
    /// Do not try paths that share links with those in use
    #[arg(long)]
    pub no_sensing: bool,
    /// Say in the JSON object how it went, about ten times a second
    #[arg(long, requires = "json")]
    pub samples: bool,
    /// Print one JSON object at the end; with --seed one when done, and one when seeding has ended
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

/// A host in some AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddr {
    /// Its AS.
    pub isd_as: IsdAsn,
    /// Its address there.
    pub ip: IpAddr,
}

impl std::fmt::Display for HostAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}", self.isd_as, self.ip)
    }
}

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// An address of this host.
    Ip(SocketAddr),
    /// The same, with the AS it must be in.
    Scion(ScionAddr),
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("'{text}' is no percentage: give a number from 0 to 100"))
}

fn daemon(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match (text, port) {
        ("default", _) | (_, Some(Ok(_))) => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, for example 127.0.0.1:30255, or default".to_owned()),
    }
}

fn local(text: &str) -> Result<IpAddr, String> {
    match text.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => Ok(ip),
        _ => Err("write one of this host's IP addresses, without a port".to_owned()),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval < Duration::from_millis(1) {
        true => Err("at least 1ms".to_owned()),
        false => Ok(interval),
    }
}

fn fingerprint_prefix(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    if !digits || text.is_empty() || text.len() > 64 {
        return Err("a fingerprint is up to 64 hex digits: see `hawser paths`".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads `1-ff00:0:110,10.0.1.1`, with or without brackets.
fn host_address(text: &str) -> Result<HostAddr, String> {
    let read = |text: &str| {
        let (isd_as, host) = text.split_once(',')?;
        let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Some(HostAddr {
            isd_as: isd_as.parse().ok()?,
            ip: inner.unwrap_or(host).parse().ok()?,
        })
    };
    read(text).ok_or_else(|| match text.parse::<ScionAddr>() {
        Ok(_) => "a host is meant, without a port: write for example 1-ff00:0:110,10.0.1.1".into(),
        Err(_) => "write for example 1-ff00:0:110,10.0.1.1".into(),
    })
}

fn listen(text: &str) -> Result<Listen, String> {
    if let Ok(address) = text.parse() {
        return Ok(Listen::Ip(address));
    }
    if let Ok(address) = text.parse() {
        return Ok(Listen::Scion(address));
    }
    Err(match text.split_once(',') {
        None if text.parse::<IpAddr>().is_ok() => {
            let address = SocketAddr::new(text.parse().unwrap_or(IpAddr::from([0; 4])), 0);
            format!("the port is missing: write {address} for any that is free")
        }
        None if text.trim_start_matches(':').parse::<u16>().is_ok() => {
            "the address is missing: write IP:PORT".to_owned()
        }
        Some((isd_as, _)) if isd_as.parse::<IsdAsn>().is_ok() => {
            "write IP:PORT after the AS, for example 1-ff00:0:110,10.0.1.1:31000".to_owned()
        }
        _ => "write IP:PORT, or a SCION address such as 1-ff00:0:110,10.0.1.1:31000".to_owned(),
    })
}

/// Reads where IP peers connect to.
fn tcp(text: &str) -> Result<SocketAddr, String> {
    let ip = |text: &str| text.parse::<IpAddr>();
    text.parse().map_err(|_| match ip(text) {
        Ok(ip) => format!("the port is missing: write {}", SocketAddr::new(ip, 6881)),
        Err(_) if text.trim_start_matches(':').parse::<u16>().is_ok() => format!(
            "the address is missing: write 0.0.0.0:{} for all of this host",
            text.trim_start_matches(':')
        ),
        Err(_) => "write IP:PORT, for example 0.0.0.0:6881".to_owned(),
    })
}

/// Reads an AS that paths can lead to.
pub(super) fn one_as(text: &str) -> Result<IsdAsn, String> {
    let isd_as: IsdAsn = text
        .parse()
        .map_err(|_| format!("{text:?} is not an ISD-AS: write for example 1-ff00:0:110"))?;
    match isd_as.is_wildcard() {
        true => Err(format!(
            "{isd_as} is not one AS: write for example 1-ff00:0:110"
        )),
        false => Ok(isd_as),
    }
}

/// Strategies of which none picks a set.
fn ranking(text: &str) -> Result<Select, String> {
    let select: Select = text
        .parse()
        .map_err(|error: SelectError| error.to_string())?;
    match select == select.ranking() {
        true => Ok(select),
        false => Err(
            "an uploader gives out paths that are apart from each other: \
             write what ranks them, shortest, latency, bandwidth or carbon"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_no_port() {
        for text in ["1-ff00:0:110,10.0.1.1", "1-ff00:0:110,[10.0.1.1]"] {
            let host = host_address(text).unwrap();
            assert_eq!(host.to_string(), "1-ff00:0:110,10.0.1.1");
        }
        assert!(host_address("1-ff00:0:110,[fd00::1]").is_ok());
        assert!(host_address("1-ff00:0:110,fd00::1").is_ok());
        for wrong in ["", "10.0.1.1", "1-ff00:0:110", "1-ff00:0:110,example"] {
            assert!(host_address(wrong).is_err(), "{wrong:?} was accepted");
        }
        let error = host_address("1-ff00:0:110,10.0.1.1:80").unwrap_err();
        assert!(error.contains("without a port"), "{error}");
    }

    #[test]
    fn what_is_missing_of_an_address_to_listen_at_is_named() {
        for (text, hint) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("fd00::1", "[fd00::1]:0"),
            ("31000", "the address is missing"),
            (":31000", "the address is missing"),
            ("1-ff00:0:110,10.0.1.1", "10.0.1.1:31000"),
            ("localhost:31000", "IP:PORT"),
        ] {
            let error = listen(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let ip = "10.0.1.1:0".parse().unwrap();
        assert_eq!(listen("10.0.1.1:0"), Ok(Listen::Ip(ip)));
        let scion = "1-ff00:0:110,10.0.1.1:31000";
        assert_eq!(listen(scion), Ok(Listen::Scion(scion.parse().unwrap())));
    }

    #[test]
    fn daemons_and_local_addresses_are_checked() {
        assert!(daemon("default").is_ok());
        assert!(daemon("[::1]:30255").is_ok());
        assert!(daemon("127.0.0.1").is_err());
        assert!(daemon("host:port").is_err());
        assert!(local("10.0.1.1").is_ok());
        assert!(local("0.0.0.0").is_err());
        assert!(local("10.0.1.1:31000").is_err());
    }
}
