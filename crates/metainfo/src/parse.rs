//! From bencode to a checked [`Metainfo`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use hawser_bencode::{self as bencode, Dict, Value};
use hawser_magnet::InfoHash;
use hawser_merkle::Hash;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::bounds::{MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
use super::error::MetainfoError;
use super::layers::{self, LayerShape, Layers};
use super::listed::{self, EntryKind, Listed};
use super::pieces::Pieces;
use super::places::{Places, link_text};
use super::torrent::{File, Link, MAX_NODES, Metainfo, Provenance, Sources, Version};
use super::tree::{self, Leaf};
use super::{hybrid, name};

/// Smallest piece length of version 2, in bytes (BEP 52).
const MIN_LENGTH_V2: u32 = 16 << 10;

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

    /// Reads an info dictionary with the hashes of its files, by their roots, that
    /// [`Metainfo::missing_layers`] named.
    ///
    /// # Errors
    /// If they are not bencode, cut short, or contradict themselves.
    pub fn from_parts(
        info: &[u8],
        layers: &BTreeMap<Hash, Vec<Hash>>,
    ) -> Result<Self, MetainfoError> {
        let layers = layers.iter();
        let layers = layers.map(|(root, nodes)| (root, Some(Value::Bytes(nodes.as_flattened()))));
        let layers = Value::dict(layers).encode();
        Self::parse(&[b"d4:info", info, b"12:piece layers", &layers, b"e"].concat())
    }

    /// What a torrent of version 2 alone needs beside its info dictionary, each file's once; nothing for
    /// other versions.
    ///
    /// # Errors
    /// If what says that is malformed, or the `.torrent` file would have more than [`MAX_METAINFO_BYTES`].
    pub fn missing_layers(bytes: &[u8]) -> Result<Vec<LayerShape>, MetainfoError> {
        let document = bencode::parse_tolerant(bytes)?;
        let info = document.as_dict().ok_or(MetainfoError::NoDictionary)?;
        if version(info)? != Version::Two {
            return Ok(Vec::new());
        }
        let piece_length = piece_length(info, Version::Two)?;
        let leaves = tree::read(info)?;
        let shapes = leaves
            .iter()
            .filter_map(|leaf| layers::shape(leaf, piece_length));
        let shapes: BTreeMap<Hash, LayerShape> = shapes.map(|it| (it.root, it)).collect();
        let nodes = shapes.values().map(|shape| shape.count as usize);
        let nodes: usize = nodes.fold(0, usize::saturating_add);
        let length = nodes.saturating_mul(32).saturating_add(bytes.len());
        match length > MAX_METAINFO_BYTES {
            true => Err(MetainfoError::TooLarge(length)),
            false => Ok(shapes.into_values().collect()),
        }
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
        let version = version(info)?;
        let info_hash_v2 =
            (version != Version::One).then(|| <[u8; 32]>::from(Sha256::digest(info.raw)));
        let info_hash = InfoHash(match (version, &info_hash_v2) {
            (Version::Two, Some(hash)) => std::array::from_fn(|at| hash[at]),
            _ => Sha1::digest(info.raw).into(),
        });
        let length = piece_length(info, version)?;
        let hashes = match version {
            Version::Two => None,
            Version::One | Version::Hybrid => Some(piece_hashes(info)?),
        };
        let raw_name = info.bytes("name.utf-8").or_else(|| info.bytes("name"));
        let raw_name = raw_name.ok_or(MetainfoError::field("info.name", "a string"))?;
        // A name of which nothing is left is that of no other torrent.
        let name = name::sanitize(raw_name).unwrap_or_else(|| info_hash.to_string());
        let leaves = match version {
            Version::One => Vec::new(),
            Version::Two | Version::Hybrid => {
                // BEP 52 has other forms than the canonical one refused.
                let canonical = bencode::parse(info.raw);
                canonical.map_err(|error| MetainfoError::VersionTwo(error.to_string()))?;
                tree::read(info)?
            }
        };
        let layers = match (version, top.dict("piece layers")) {
            (Version::One, _) | (Version::Hybrid, None) => None,
            (_, found) => Some(Layers::read(
                &leaves,
                length,
                found.unwrap_or(&Dict::default()),
            )?),
        };
        let (listed, multi_file) = match (version, info.find("files"), info.find("length")) {
            (Version::Two, _, _) => aligned(leaves, length, &name, raw_name)?,
            (_, None, None) => return Err(MetainfoError::NoFiles),
            (_, files, _) => {
                let listed = match files {
                    Some(_) => listed::files(info)?,
                    None => vec![single_file(info, &name, raw_name)?],
                };
                if version == Version::Hybrid {
                    let single = files.is_none().then_some(raw_name);
                    hybrid::check(&leaves, length, &listed, single)?;
                }
                (listed, files.is_some())
            }
        };
        let total = total(&listed)?;
        if !listed.iter().any(Listed::has_content) {
            return Err(MetainfoError::Empty);
        }
        let expected = total.div_ceil(u64::from(length));
        if let Some(hashes) = hashes {
            let found = (hashes.len() / 20) as u64;
            if found != expected {
                return Err(MetainfoError::PieceCount {
                    found,
                    expected,
                    total_length: total,
                });
            }
        }
        if u32::try_from(expected).is_err() {
            return Err(MetainfoError::TooManyPieces(expected));
        }
        let (files, links) = placed(&name, listed, multi_file);
        let literal_name = name::literal(&[raw_name]).map(PathBuf::into_os_string);
        let literal_name = literal_name.filter(|literal| literal != name.as_str());

        Ok(Self {
            info_hash,
            info_hash_v2,
            name,
            literal_name,
            pieces: Pieces { length, total },
            info: info.raw.into(),
            piece_hashes: hashes.map(|hashes| part_of(info.raw, hashes)),
            layers: layers.map(Arc::new),
            files,
            links,
            multi_file,
            private: info.int("private").is_some_and(|it| it != 0),
            sources: Sources {
                trackers: trackers(top),
                nodes: nodes(top),
                web_seeds: texts(top.find("url-list")),
            },
            provenance: Provenance {
                comment: text(top, "comment"),
                created_by: text(top, "created by"),
                creation_date: top.int("creation date"),
                source: text(info, "source"),
            },
        })
    }
}

/// Where `part`, which was read from `whole`, is in it.
fn part_of(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// The version, from the parts that there are (BEP 52).
fn version(info: &Dict<'_>) -> Result<Version, MetainfoError> {
    let version = info.int("meta version");
    let tree = info.find("file tree").is_some();
    match version {
        Some(version) if version > 2 => Err(MetainfoError::Version(version)),
        Some(2) if info.find("pieces").is_none() => Ok(Version::Two),
        Some(2) => Ok(Version::Hybrid),
        _ if tree => Err(MetainfoError::VersionTwo(
            "there is a `file tree`, but no `meta version`".to_owned(),
        )),
        _ => Ok(Version::One),
    }
}

fn piece_length(info: &Dict<'_>, version: Version) -> Result<u32, MetainfoError> {
    let given = info.int("piece length");
    let given = given.ok_or(MetainfoError::field("info.piece length", "a number"))?;
    let length = u32::try_from(given)
        .ok()
        .filter(|length| (MIN_PIECE_LENGTH..=MAX_PIECE_LENGTH).contains(length))
        .ok_or(MetainfoError::PieceLength(given))?;
    if version != Version::One && !(length.is_power_of_two() && length >= MIN_LENGTH_V2) {
        let why = format!("version 2 has no piece length {length}");
        return Err(MetainfoError::VersionTwo(why));
    }
    Ok(length)
}

/// The SHA-1 of each piece, one after another.
fn piece_hashes<'a>(info: &Dict<'a>) -> Result<&'a [u8], MetainfoError> {
    let hashes = info.bytes("pieces");
    let hashes = hashes.ok_or(MetainfoError::field("info.pieces", "a string"))?;
    match hashes.len().is_multiple_of(20) {
        true => Ok(hashes),
        false => Err(MetainfoError::PiecesCut(hashes.len())),
    }
}

/// The files of a torrent of version 2 alone, with padding between them so that each begins with a piece;
/// and whether they are in a folder. A file alone that has the name of the torrent is not.
fn aligned(
    leaves: Vec<Leaf<'_>>,
    piece_length: u32,
    name: &str,
    raw_name: &[u8],
) -> Result<(Vec<Listed>, bool), MetainfoError> {
    let is_single = matches!(&leaves[..], [leaf] if leaf.elements == [raw_name]);
    let (mut listed, mut at) = (Vec::with_capacity(leaves.len()), 0_u64);
    for leaf in leaves {
        let mut file = leaf.listed()?;
        let gap = at.next_multiple_of(piece_length.into()) - at;
        if gap > 0 && file.has_content() {
            at += gap;
            listed.push(Listed {
                path: Vec::new(),
                original: None,
                literal: None,
                length: gap,
                kind: EntryKind::Padding,
            });
        }
        // Lengths that do not fit are refused when all are added up.
        at = at.saturating_add(file.length).min(i64::MAX as u64);
        if is_single {
            file.path = vec![name.to_owned()];
        }
        listed.push(file);
    }
    Ok((listed, !is_single))
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
