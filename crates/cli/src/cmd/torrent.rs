//! `hawser torrent`: making and showing `.torrent` files, and the torrents of the daemon.

mod daemon;
mod magnet;
mod show;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use hawser_torrent::{CreateError, CreateOptions, Metainfo, Version};

use self::daemon::Action;
use self::magnet::TorrentMagnetArgs;
use super::files;
use super::quantity::size;
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::{errln, outln, plain};
use crate::output::Output;
use crate::screen::Work;

#[derive(Subcommand)]
pub enum TorrentCommand {
    /// Make a .torrent file of a file or folder
    Create(TorrentCreateArgs),
    /// Show the content of a .torrent file
    Show {
        /// The .torrent file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the magnet link of a .torrent file
    Magnet(TorrentMagnetArgs),
    /// Have the daemon download and seed a torrent
    Add(daemon::AddArgs),
    /// List the torrents of the daemon
    List(daemon::ListArgs),
    /// Show a torrent of the daemon with its files, peers and trackers, and choose files
    Files(daemon::FilesArgs),
    /// Start a torrent of the daemon when it is its turn
    Start(daemon::OneArgs),
    /// Stop a torrent of the daemon until it is started
    Stop(daemon::OneArgs),
    /// Wait until a torrent of the daemon is complete, was stopped, or has failed
    Wait(daemon::OneArgs),
    /// Verify the content of a torrent of the daemon
    Verify(daemon::OneArgs),
    /// Show the trackers of a torrent of the daemon, or change them
    Trackers(daemon::TrackersArgs),
    /// Limit the rates of a torrent of the daemon, its seeding and its peers
    Limit(daemon::LimitArgs),
    /// Show the bandwidth groups of the daemon, or change one
    Group(daemon::GroupArgs),
    /// Move the content of a torrent of the daemon to another folder
    Move(daemon::MoveArgs),
    /// Remove a torrent from the daemon, with its content or without
    Remove(daemon::RemoveArgs),
}

#[derive(clap::Args)]
pub struct TorrentCreateArgs {
    /// The file or folder
    pub path: PathBuf,
    /// Where to write it; PATH.torrent when not given
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    ///
    /// A file that is read is never replaced.
    #[arg(long)]
    pub force: bool,
    /// How the content is hashed: 1 (by itself), 2 or hybrid (BEP 52)
    ///
    /// Every program fetches version 1, and most fetch hybrids. With version 2 each file has a hash of its
    /// own, which is the same in all torrents.
    #[arg(
        long,
        value_name = "VERSION",
        value_enum,
        default_value_t,
        hide_default_value = true
    )]
    #[arg(hide_possible_values = true)]
    pub protocol: TorrentVersion,
    /// Bytes of a piece: a power of two, 16KiB to 128MiB
    ///
    /// Chosen by size when not given.
    #[arg(long, value_name = "N", value_parser = piece_length)]
    pub piece_length: Option<u32>,
    /// A tracker, or several that make a tier
    ///
    /// The trackers of a tier, separated by commas, are tried in any order. May be given several
    /// times: each is a tier, tried after those before it.
    #[arg(long, short, alias = "tracker", value_name = "URL,...", value_parser = tier)]
    pub announce: Vec<Tier>,
    /// A node of the DHT to begin with: router.example.org:6881
    ///
    /// May be given several times.
    #[arg(long, value_name = "HOST:PORT", value_parser = node)]
    pub node: Vec<(String, u16)>,
    /// Let peers come from the trackers alone (BEP 27)
    ///
    /// Not from DHT or other peers.
    #[arg(long, short)]
    pub private: bool,
    /// Free text for readers
    #[arg(long, short, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Where the torrent is from
    ///
    /// It gives the same content another info-hash on each tracker.
    #[arg(long, short, value_name = "TEXT")]
    pub source: Option<String>,
    /// Where the content is on a web server (BEP 19)
    ///
    /// The file, or the folder above that of the torrent, with a / at the end. May be given several
    /// times.
    #[arg(long, short, value_name = "URL", value_parser = web_seed)]
    pub web_seed: Vec<String>,
}

/// A version of torrents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TorrentVersion {
    /// Version 1.
    #[default]
    #[value(name = "1")]
    One,
    /// Version 2 alone.
    #[value(name = "2")]
    Two,
    /// Both.
    Hybrid,
}

impl From<TorrentVersion> for Version {
    fn from(version: TorrentVersion) -> Self {
        match version {
            TorrentVersion::One => Self::One,
            TorrentVersion::Two => Self::Two,
            TorrentVersion::Hybrid => Self::Hybrid,
        }
    }
}

/// Trackers that are tried in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier(pub Vec<String>);

fn piece_length(text: &str) -> Result<u32, String> {
    let length = size(text)?;
    u32::try_from(length).map_err(|_| format!("{text}: at most 128MiB"))
}

fn tier(text: &str) -> Result<Tier, String> {
    let schemes = &["http", "https", "udp", "ws", "wss"];
    let example = "udp://tracker.example.org:6969/announce";
    // Not the comma in the address of a SCION host, which stands in brackets.
    let mut inside = false;
    let urls = text.split(|c: char| {
        inside = c == '[' || (inside && c != ']');
        c == ',' && !inside
    });
    let urls = urls.map(|one| url(one, schemes, example));
    urls.collect::<Result<_, _>>().map(Tier)
}

/// A host, by name or address, and a UDP port.
fn node(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is not a node: write for example router.example.org:6881");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port != 0);
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let is_host = match inner {
        Some(ipv6) => ipv6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            (1..=253).contains(&host.len()) && host.chars().all(is_of_name)
        }
    };
    let host = inner.unwrap_or(host).to_owned();
    port.filter(|_| is_host)
        .map(|port| (host, port))
        .ok_or_else(wrong)
}

fn web_seed(text: &str) -> Result<String, String> {
    let schemes = &["http", "https", "ftp"];
    url(text, schemes, "https://example.org/files/")
}

/// Checks the form of a URL (RFC 3986): one of the schemes, a host, and no character that must be
/// escaped.
fn url(text: &str, schemes: &[&str], example: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a URL of this kind: write for example {example}");
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    let known = schemes
        .iter()
        .any(|known| known.eq_ignore_ascii_case(scheme));
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if !known || host.is_empty() || host.starts_with(':') || text.contains(odd) {
        return Err(wrong());
    }
    Ok(text.to_owned())
}

/// Runs `hawser torrent`.
pub fn run(command: TorrentCommand) -> Result<(), Failure> {
    match command {
        TorrentCommand::Create(args) => create(args),
        TorrentCommand::Show { file, json } => show::run(&file, json),
        TorrentCommand::Magnet(args) => magnet::run(&args),
        TorrentCommand::Add(args) => daemon::add(&args),
        TorrentCommand::List(args) => daemon::list(&args),
        TorrentCommand::Files(args) => daemon::files(&args),
        TorrentCommand::Start(args) => daemon::act(&args, Action::Start),
        TorrentCommand::Stop(args) => daemon::act(&args, Action::Stop),
        TorrentCommand::Wait(args) => daemon::wait(&args),
        TorrentCommand::Verify(args) => daemon::act(&args, Action::Verify),
        TorrentCommand::Trackers(args) => daemon::trackers(&args),
        TorrentCommand::Limit(args) => daemon::limit(&args),
        TorrentCommand::Group(args) => daemon::group(&args),
        TorrentCommand::Move(args) => daemon::relocate(&args),
        TorrentCommand::Remove(args) => daemon::remove(&args),
    }
}

fn create(args: TorrentCreateArgs) -> Result<(), Failure> {
    let path = &args.path;
    // Report a missing input before an existing output.
    files::check_input(path)?;
    let output = match &args.output {
        Some(output) => Output::check("-o", output, args.force, &[path])?,
        None => Output::check("", &beside(path)?, args.force, &[path])?,
    };
    let tiers = args.announce.into_iter().map(|tier| tier.0);
    let options = CreateOptions {
        version: args.protocol.into(),
        piece_length: args.piece_length,
        comment: args.comment,
        trackers: tiers.collect(),
        nodes: args.node,
        web_seeds: args.web_seed,
        private: args.private,
        source: args.source,
    };
    let bytes = hashed(path, &options)?;
    // Read it back, because a file that `get` refuses is useless.
    let metainfo = Metainfo::parse(&bytes).doing(path.display())?;
    output.write(&bytes)?;
    outln!(
        "{}: {} in {} pieces of {}, info-hash {}",
        plain(&output.path().display().to_string()),
        format::bytes(metainfo.pieces.total),
        metainfo.pieces.count(),
        format::bytes(metainfo.pieces.length.into()),
        metainfo.info_hash,
    );
    let changed = metainfo.files.iter().filter(|file| file.original.is_some());
    let changed =
        changed.count() + usize::from(metainfo.multi_file && metainfo.literal_name.is_some());
    if changed > 0 {
        errln!(
            "names with characters that other systems refuse: {changed}; downloads replace these \
             characters, and `hawser torrent show` lists the names"
        );
    }
    Ok(())
}

/// Hashes a file or folder into a torrent, with a bar on a terminal.
fn hashed(path: &Path, options: &CreateOptions) -> Result<Vec<u8>, Failure> {
    let mut work = Work::begin("hashing");
    hawser_torrent::create(path, options, |done, total| work.show(done, total)).map_err(|error| {
        match error {
            CreateError::PieceLength(_) => Failure::usage(format!("--piece-length: {error}")),
            error => Failure::job(error),
        }
    })
}

/// `PATH.torrent`, beside PATH.
fn beside(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = path.canonicalize().doing(path.display())?;
    let name = absolute
        .file_name()
        .ok_or_else(|| Failure::usage(format!("{}: has no name: give -o FILE", path.display())))?;
    let mut file = name.to_owned();
    file.push(".torrent");
    Ok(match path.parent() {
        Some(parent) if path.file_name().is_some() => parent.join(file),
        _ => PathBuf::from(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracker_may_be_in_a_scion_network() {
        let scion = "udp://[1-ff00:0:110,10.0.0.1]:6969";
        let urls = tier(&format!("{scion},http://a.example/,{scion}/announce")).unwrap();
        assert_eq!(
            urls.0,
            [scion, "http://a.example/", &format!("{scion}/announce")]
        );
    }

    #[test]
    fn nodes_are_hosts_with_ports() {
        for (text, host) in [
            ("router.example.org:6881", "router.example.org"),
            ("10.0.0.1:6881", "10.0.0.1"),
            ("[2001:db8::1]:6881", "2001:db8::1"),
        ] {
            assert_eq!(node(text), Ok((host.to_owned(), 6881)));
        }
        for wrong in [
            "",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "2001:db8::1:6881",
            "[a]:1",
            "a b:1",
        ] {
            assert!(node(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn trackers_are_urls() {
        let one = "udp://tracker.example.org:6969/announce";
        assert_eq!(tier(one), Ok(Tier(vec![one.to_owned()])));
        let two = "http://a.example/announce,https://[2001:db8::1]:443/x?y=z";
        assert_eq!(tier(two).map(|tier| tier.0.len()), Ok(2));
        for wrong in [
            "",
            "tracker.example.org",
            "http://",
            "http:///announce",
            "udp://:6969",
            "magnet:?xt=urn:btih:0",
            "http://a.example/ b",
            "http://a.example,",
            "ftp://a.example/",
        ] {
            assert!(tier(wrong).is_err(), "{wrong:?} was accepted");
        }
        assert!(web_seed("ftp://a.example/").is_ok());
        assert!(web_seed("udp://a.example/").is_err());
    }
}
