//! Magnet links: the parameters that BitTorrent programs use (BEP 9, BEP 53).

mod files;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32, HEXLOWER, HEXLOWER_PERMISSIVE};
use hawser_address::PeerAddr;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use thiserror::Error;

pub use self::files::Files;
use crate::hashes::InfoHashes;

/// Longest link that is read, in bytes.
pub const MAX_LINK_BYTES: usize = 64 << 10;

/// Most trackers, web seeds, peers and exact sources of each kind that are kept; further ones are
/// ignored.
const MAX_EACH: usize = 128;

/// The multihash of SHA-256 with 32 bytes, in hexadecimal digits (BEP 9).
const MULTIHASH: &str = "1220";

/// Characters that stand for themselves in a value: the unreserved ones of RFC 3986, 2.3.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Characters that stand for themselves in the address of a peer.
const PEER: &AsciiSet = &VALUE.remove(b':').remove(b',');

/// A magnet link.
///
/// Prints as, and is parsed from, `magnet:?xt=urn:btih:…`. Repeated parameters may be numbered
/// (`tr.1`). Unknown parameters are ignored, and so are values of optional ones that name nothing,
/// except a wrong SCION address and a wrong list of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Magnet {
    /// The torrent (`xt`): `urn:btih:` with 40 hexadecimal or 32 base32 digits, `urn:btmh:1220`
    /// with 64 hexadecimal digits. One that was parsed has at least one hash.
    pub info_hashes: InfoHashes,
    /// The name to show until the metainfo is known (`dn`), without control characters.
    pub name: Option<String>,
    /// URLs of trackers (`tr`), each once.
    pub trackers: Vec<String>,
    /// URLs of web seeds (`ws`), each once.
    pub web_seeds: Vec<String>,
    /// URLs of the metainfo file (`xs`), each once.
    pub exact_sources: Vec<String>,
    /// Peers (`x.pe`), each once.
    pub peers: Vec<MagnetPeer>,
    /// The files to download (`so`, BEP 53); all files, if it is empty.
    pub files: Files,
}

/// A peer that a link names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MagnetPeer {
    /// At an address.
    Addr(PeerAddr),
    /// At a host name with a port, as in `peer.example:6881`.
    Name(String),
}

impl fmt::Display for MagnetPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => addr.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Why a text is not a magnet link, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MagnetError {
    /// Longer than [`MAX_LINK_BYTES`].
    #[error("the magnet link has {0} bytes: it may have {MAX_LINK_BYTES}")]
    TooLong(usize),
    /// It begins differently.
    #[error("`{0}` is not a magnet link: it begins with magnet:?")]
    NoMagnet(String),
    /// It has no `xt` of BitTorrent.
    #[error("the magnet link names no torrent: it has neither xt=urn:btih: nor xt=urn:btmh:1220")]
    NoInfoHash,
    /// An `xt` of BitTorrent that is not an info-hash.
    #[error(
        "`{0}` is not an info-hash: urn:btih: has 40 hexadecimal or 32 base32 digits, \
         urn:btmh:1220 has 64 hexadecimal digits"
    )]
    InfoHash(String),
    /// Two different info-hashes of the same kind.
    #[error("the magnet link names two torrents, {0} and {1}")]
    TwoTorrents(String, String),
    /// An `x.pe` with an AS that is not the address of a SCION peer.
    #[error("`{0}` is not a SCION peer: write x.pe=1-ff00:0:110,10.0.0.1:6881")]
    Peer(String),
    /// An `so` that is not a list of files.
    #[error("`{0}` does not select files: write so=0,2,4-6")]
    Files(String),
}

impl FromStr for Magnet {
    type Err = MagnetError;

    fn from_str(text: &str) -> Result<Self, MagnetError> {
        let text = text.trim();
        if text.len() > MAX_LINK_BYTES {
            return Err(MagnetError::TooLong(text.len()));
        }
        let begins = text.get(..8).filter(|s| s.eq_ignore_ascii_case("magnet:?"));
        if begins.is_none() {
            return Err(MagnetError::NoMagnet(excerpt(text)));
        }
        let mut magnet = Self::default();
        for parameter in text[8..].split('&') {
            // A link copied from the source of a page has `&amp;` between its parameters.
            let parameter = parameter.strip_prefix("amp;").unwrap_or(parameter);
            if let Some((key, value)) = parameter.split_once('=') {
                magnet.add(unnumbered(key), value)?;
            }
        }
        match magnet.info_hashes.is_empty() {
            true => Err(MagnetError::NoInfoHash),
            false => Ok(magnet),
        }
    }
}

impl Magnet {
    /// Takes up one parameter.
    fn add(&mut self, key: &str, value: &str) -> Result<(), MagnetError> {
        match &*key.to_ascii_lowercase() {
            "xt" => self.add_topic(&decoded(value).unwrap_or_default())?,
            // Programs write a space in a name as forms do.
            "dn" => self.name = self.name.take().or_else(|| name(&value.replace('+', " "))),
            "tr" => push(&mut self.trackers, decoded(value)),
            "ws" => push(&mut self.web_seeds, decoded(value)),
            "xs" => push(&mut self.exact_sources, decoded(value)),
            "x.pe" => push(
                &mut self.peers,
                decoded(value).map(peer).transpose()?.flatten(),
            ),
            "so" => {
                let text = decoded(value).unwrap_or_default();
                let files = Files::read(&text);
                self.files
                    .extend(files.ok_or_else(|| MagnetError::Files(excerpt(&text)))?);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_topic(&mut self, topic: &str) -> Result<(), MagnetError> {
        let invalid = || MagnetError::InfoHash(excerpt(topic));
        let hashes = &mut self.info_hashes;
        if let Some(digits) = strip_prefix(topic, "urn:btih:") {
            let hash = match digits.len() {
                32 => BASE32.decode(digits.to_ascii_uppercase().as_bytes()).ok(),
                _ => HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok(),
            };
            set(&mut hashes.v1, hash.ok_or_else(invalid)?, invalid)
        } else if let Some(digits) = strip_prefix(topic, "urn:btmh:") {
            let digits = digits.strip_prefix(MULTIHASH).ok_or_else(invalid)?;
            let hash = HEXLOWER_PERMISSIVE.decode(digits.as_bytes());
            set(&mut hashes.v2, hash.map_err(|_| invalid())?, invalid)
        } else {
            Ok(())
        }
    }
}

/// Sets one of the hashes, which may be repeated.
fn set<const N: usize>(
    known: &mut Option<[u8; N]>,
    hash: Vec<u8>,
    invalid: impl Fn() -> MagnetError,
) -> Result<(), MagnetError> {
    let hash: [u8; N] = hash.try_into().map_err(|_| invalid())?;
    match known.replace(hash).filter(|known| *known != hash) {
        Some(known) => {
            let [known, hash] = [known, hash].map(|hash| HEXLOWER.encode(&hash));
            Err(MagnetError::TwoTorrents(known, hash))
        }
        None => Ok(()),
    }
}

/// A key without its number: `tr` for `tr.1`.
fn unnumbered(key: &str) -> &str {
    match key.rsplit_once('.') {
        Some((key, number))
            if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            key
        }
        _ => key,
    }
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let begins = text.get(..prefix.len())?.eq_ignore_ascii_case(prefix);
    begins.then(|| &text[prefix.len()..])
}

/// A value without percent-encoding; `None` if it is empty or no text of one line.
fn decoded(value: &str) -> Option<String> {
    let text = percent_decode_str(value).decode_utf8().ok()?;
    let is_line = !text.is_empty() && !text.contains(char::is_control);
    is_line.then(|| text.into_owned())
}

/// A name that can be shown.
fn name(value: &str) -> Option<String> {
    let text = percent_decode_str(value).decode_utf8_lossy();
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    Some(text).filter(|text| !text.is_empty())
}

/// Adds a value that is not there yet, if there is room.
fn push<T: PartialEq>(values: &mut Vec<T>, value: Option<T>) {
    let value = value.filter(|value| values.len() < MAX_EACH && !values.contains(value));
    values.extend(value);
}

/// A peer; `None` for one that cannot be reached.
fn peer(text: String) -> Result<Option<MagnetPeer>, MagnetError> {
    match text.parse() {
        Ok(addr) => Ok(Some(MagnetPeer::Addr(addr))),
        Err(_) if text.contains(',') => Err(MagnetError::Peer(excerpt(&text))),
        Err(_) => Ok(is_name_with_port(&text).then_some(MagnetPeer::Name(text))),
    }
}

/// Whether a text is a host name with a port. A name that consists of digits and dots would be an
/// IP address.
fn is_name_with_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_port = port.bytes().all(|digit| digit.is_ascii_digit())
        && port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_host = host.bytes().all(is_of_name)
        && host.bytes().any(|byte| byte.is_ascii_alphabetic())
        && host.len() <= 253;
    is_port && is_host
}

/// The beginning of a text, in one line.
fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut out: String = text.chars().take(MAX_CHARS).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    match out.contains(char::is_control) {
        true => out.escape_debug().to_string(),
        false => out,
    }
}

impl fmt::Display for Magnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "magnet:?";
        let mut add = |key: &str, value: &str, set: &'static AsciiSet| {
            let value = utf8_percent_encode(value, set);
            write!(f, "{}{key}={value}", std::mem::replace(&mut separator, "&"))
        };
        if let Some(v1) = &self.info_hashes.v1 {
            add("xt", &format!("urn:btih:{}", HEXLOWER.encode(v1)), PEER)?;
        }
        if let Some(v2) = &self.info_hashes.v2 {
            let digits = HEXLOWER.encode(v2);
            add("xt", &format!("urn:btmh:{MULTIHASH}{digits}"), PEER)?;
        }
        if let Some(name) = &self.name {
            add("dn", name, VALUE)?;
        }
        let urls = [
            ("tr", &self.trackers),
            ("ws", &self.web_seeds),
            ("xs", &self.exact_sources),
        ];
        for (key, values) in urls {
            values.iter().try_for_each(|value| add(key, value, VALUE))?;
        }
        for peer in &self.peers {
            add("x.pe", &peer.to_string(), PEER)?;
        }
        if !self.files.is_empty() {
            add("so", &self.files.to_string(), PEER)?;
        }
        Ok(())
    }
}
