//! The arguments of `hawser torrent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::quantity::size;

#[derive(Args)]
pub struct TorrentArgs {
    #[command(subcommand)]
    pub command: TorrentCommand,
}

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
}

#[derive(Args)]
pub struct TorrentCreateArgs {
    /// The file or folder
    pub path: PathBuf,
    /// Where to write it; PATH.torrent when not given
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists; a file that is read is never replaced
    #[arg(long)]
    pub force: bool,
    /// Bytes of a piece: a power of two from 16KiB to 128MiB; chosen by size when not given
    #[arg(long, value_name = "N", value_parser = piece_length)]
    pub piece_length: Option<u32>,
    /// A tracker; several, separated by commas, make a tier whose trackers are tried in any order.
    /// May be given several times: each is a tier, tried after those before it
    #[arg(long, short, value_name = "URL[,URL...]", value_parser = tier)]
    pub announce: Vec<Tier>,
    /// Let peers come from the trackers alone, not from DHT or other peers (BEP 27)
    #[arg(long, short)]
    pub private: bool,
    /// Free text for readers
    #[arg(long, short, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Where the torrent is from: it gives the same content another info-hash on each tracker
    #[arg(long, short, value_name = "TEXT")]
    pub source: Option<String>,
    /// Where the content is on a web server (BEP 19): the file, or the folder above that of the
    /// torrent, with a / at the end; may be given several times
    #[arg(long, short, value_name = "URL", value_parser = web_seed)]
    pub web_seed: Vec<String>,
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
    let urls = text.split(',').map(|one| url(one, schemes, example));
    urls.collect::<Result<_, _>>().map(Tier)
}

fn web_seed(text: &str) -> Result<String, String> {
    let schemes = &["http", "https", "ftp"];
    url(text, schemes, "https://example.org/files/")
}

/// Checks the shape of a URL (RFC 3986): a scheme that means something here, a host, and no
/// character that has to be escaped.
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

#[cfg(test)]
mod tests {
    use super::*;

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
