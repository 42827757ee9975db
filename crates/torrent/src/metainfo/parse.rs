//! From bencode to a checked [`Metainfo`].

use std::ops::Range;
use std::path::PathBuf;

use hawser_bencode::{self as bencode, Dict, Value};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::error::MetainfoError;
use super::listed::{self, EntryKind, Listed};
use super::places::{Places, link_text};
use super::torrent::{
    File, InfoHash, Link, MAX_METAINFO_BYTES, MAX_NODES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH,
    Metainfo,
};
use super::{hybrid, name};
use crate::pieces::Pieces;

/// Longest name of a host (RFC 1035), in bytes.
const MAX_HOST: usize = 253;

impl Metainfo {
    /// Reads an info dictionary alone, as peers send it to those that have a magnet link (BEP 9).
    ///
    /// # Errors
    /// If it is not bencode, cut short, or contradicts itself.
    pub fn from_info(info: &[u8]) -> Result<Self, MetainfoError> {
        Self::parse(&[b"d4:info", info, b"e"].concat())
    }

    /// Reads the bytes of a `.torrent` file.
    ///
    /// # Errors
    /// If they are not bencode, cut short, or contradict themselves.
    pub fn parse(bytes: &[u8]) -> Result<Self, MetainfoError> {
        if bytes.len() > MAX_METAINFO_BYTES {
            return Err(MetainfoError::TooLarge(bytes.len()));
        }
        let document = bencode::parse_tolerant(bytes)?;
        let top = document.as_dict().ok_or(MetainfoError::NoDictionary)?;
        let info = top.dict("info");
        let info = info.ok_or(MetainfoError::field("info", "a dictionary"))?;
        let info_hash = InfoHash(Sha1::digest(info.raw).into());

        let version_two = version_two(info)?;
        let given = info.int("piece length");
        let given = given.ok_or(MetainfoError::field("info.piece length", "a number"))?;
        let length = u32::try_from(given)
            .ok()
            .filter(|length| (MIN_PIECE_LENGTH..=MAX_PIECE_LENGTH).contains(length))
            .ok_or(MetainfoError::PieceLength(given))?;
        let hashes = info.bytes("pieces");
        let hashes = hashes.ok_or(MetainfoError::field("info.pieces", "a string"))?;
        if !hashes.len().is_multiple_of(20) {
            return Err(MetainfoError::PiecesCut(hashes.len()));
        }

        let raw_name = info.bytes("name.utf-8").or_else(|| info.bytes("name"));
        let raw_name = raw_name.ok_or(MetainfoError::field("info.name", "a string"))?;
        // A name of which nothing is left is that of no other torrent.
        let name = name::sanitize(raw_name).unwrap_or_else(|| info_hash.to_string());
        let (listed, multi_file) = match (info.find("files"), info.find("length")) {
            (Some(_), _) => (listed::files(info)?, true),
            (None, Some(_)) => (vec![single_file(info, &name, raw_name)?], false),
            (None, None) => return Err(MetainfoError::NoFiles),
        };
        let total = total(&listed)?;
        if !listed.iter().any(Listed::has_content) {
            return Err(MetainfoError::Empty);
        }
        let expected = total.div_ceil(u64::from(length));
        let found = (hashes.len() / 20) as u64;
        if found != expected {
            return Err(MetainfoError::PieceCount {
                found,
                expected,
                total_length: total,
            });
        }
        if version_two {
            let single = (!multi_file).then_some(raw_name);
            hybrid::check(info, length, &listed, single)?;
        }
        let (files, links) = placed(&name, listed, multi_file);
        let literal_name = name::literal(&[raw_name]).map(PathBuf::into_os_string);
        let literal_name = literal_name.filter(|literal| literal != name.as_str());

        Ok(Self {
            info_hash,
            info_hash_v2: version_two.then(|| Sha256::digest(info.raw).into()),
            name,
            literal_name,
            pieces: Pieces { length, total },
            info: info.raw.into(),
            piece_hashes: part_of(info.raw, hashes),
            files,
            links,
            multi_file,
            comment: text(top, "comment"),
            created_by: text(top, "created by"),
            creation_date: top.int("creation date"),
            trackers: trackers(top),
            nodes: nodes(top),
            web_seeds: texts(top.find("url-list")),
            private: info.int("private").is_some_and(|it| it != 0),
            source: text(info, "source"),
        })
    }
}

/// Where `part`, which was read from `whole`, is in it.
fn part_of(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// Whether there is a version 2 part beside that of version 1 (BEP 52).
fn version_two(info: &Dict<'_>) -> Result<bool, MetainfoError> {
    let version = info.int("meta version");
    let tree = info.find("file tree").is_some();
    match version {
        Some(version) if version > 2 => Err(MetainfoError::Version(version)),
        _ if info.find("pieces").is_none() && (tree || version == Some(2)) => {
            Err(MetainfoError::VersionTwoOnly)
        }
        Some(2) => Ok(true),
        _ if tree => Err(MetainfoError::Hybrid(
            "there is a `file tree`, but no `meta version`".to_owned(),
        )),
        _ => Ok(false),
    }
}

fn single_file(info: &Dict<'_>, name: &str, raw_name: &[u8]) -> Result<Listed, MetainfoError> {
    let is_changed = name.as_bytes() != raw_name;
    Ok(Listed {
        path: vec![name.to_owned()],
        original: is_changed.then(|| name::shown(raw_name)),
        literal: name::literal(&[raw_name]).filter(|_| is_changed),
        length: listed::length(info, "info.length", || name::printable(raw_name))?,
        kind: EntryKind::Content,
    })
}

/// The files and links at places of their own, in the torrent's folder if it has one.
fn placed(name: &str, mut listed: Vec<Listed>, multi_file: bool) -> (Vec<File>, Vec<Link>) {
    let places = Places::assign(&mut listed);
    let targets = places.link_targets(&listed);
    let root = PathBuf::from(if multi_file { name } else { "" });
    let (mut files, mut links) = (Vec::with_capacity(listed.len()), Vec::new());
    for (file, target) in listed.into_iter().zip(targets) {
        let path = root.join(file.path.iter().collect::<PathBuf>());
        match file.kind {
            EntryKind::Link(_) => links.push(Link {
                target: target.map(|target| link_text(&file.path, &target).into()),
                path,
            }),
            EntryKind::Content | EntryKind::Padding => files.push(File {
                path,
                original: file.original,
                literal: file.literal,
                length: file.length,
                padding: matches!(file.kind, EntryKind::Padding),
            }),
        }
    }
    (files, links)
}

/// The bytes of all files together, which must fit an `i64`, too.
fn total(files: &[Listed]) -> Result<u64, MetainfoError> {
    let mut sum = 0_u64;
    for file in files {
        sum = sum
            .checked_add(file.length)
            .filter(|sum| i64::try_from(*sum).is_ok())
            .ok_or_else(|| {
                let path = file.path.join("/");
                MetainfoError::FileLength(name::printable(path.as_bytes()))
            })?;
    }
    Ok(sum)
}

/// An optional text, from `key` with `.utf-8` after it if that exists. Bytes that are not UTF-8 are
/// replaced.
fn text(from: &Dict<'_>, key: &str) -> Option<String> {
    let utf8 = from.find(&format!("{key}.utf-8"));
    let bytes = utf8.or_else(|| from.find(key))?.as_bytes()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The tiers of trackers: `announce-list` if it names any (BEP 12), else `announce`.
fn trackers(top: &Dict<'_>) -> Vec<Vec<String>> {
    let tiers = top.list("announce-list").unwrap_or_default().iter();
    let tiers: Vec<Vec<String>> = tiers
        .map(|tier| texts(Some(tier)))
        .filter(|tier| !tier.is_empty())
        .collect();
    match texts(top.find("announce")) {
        announce if tiers.is_empty() && !announce.is_empty() => vec![announce],
        _ => tiers,
    }
}

/// The nodes of the DHT: lists of a host and a port (BEP 5). What is something else is left out, since a
/// torrent is of use without.
fn nodes(top: &Dict<'_>) -> Vec<(String, u16)> {
    let node = |value: &Value<'_>| {
        let Value::List(pair) = value else {
            return None;
        };
        let [host, Value::Int(port)] = &pair[..] else {
            return None;
        };
        let host = std::str::from_utf8(host.as_bytes()?).ok()?.trim();
        let port = u16::try_from(*port).ok().filter(|port| *port != 0)?;
        let is_host = (1..=MAX_HOST).contains(&host.len());
        is_host.then(|| (host.to_owned(), port))
    };
    let listed = top.list("nodes").unwrap_or_default().iter();
    listed.filter_map(node).take(MAX_NODES).collect()
}

/// A text, or a list of them; empty ones left out.
fn texts(value: Option<&Value<'_>>) -> Vec<String> {
    let one = |value: &Value<'_>| {
        let text = String::from_utf8_lossy(value.as_bytes()?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    match value {
        Some(Value::List(list)) => list.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}
