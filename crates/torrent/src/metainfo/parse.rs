//! From bencode to a checked [`Metainfo`].

use std::path::PathBuf;

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::bencode::{self, Dict, Value};
use super::bounds::{MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
use super::error::MetainfoError;
use super::hybrid::{self, VersionOne};
use super::info_hash::InfoHash;
use super::listed::{self, Kind, Listed};
use super::places::{Leaf, Places, link_text};
use super::torrent::{File, Link, Metainfo};
use super::{fields, name};
use crate::pieces::Pieces;

impl Metainfo {
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
        let info = fields::dict(top, "info", "info")?;
        // `dict` found it, so its span is there.
        let info_bytes = &bytes[top.span("info").unwrap_or_default()];
        let info_hash = InfoHash(Sha1::digest(info_bytes).into());

        let version_two = version_two(info)?;
        let piece_length = fields::int(info, "piece length", "info.piece length")?;
        let piece_length = u32::try_from(piece_length)
            .ok()
            .filter(|length| (MIN_PIECE_LENGTH..=MAX_PIECE_LENGTH).contains(length))
            .ok_or(MetainfoError::PieceLength(piece_length))?;
        let pieces = fields::string(info, "pieces", "info.pieces")?;
        if !pieces.len().is_multiple_of(20) {
            return Err(MetainfoError::PiecesCut(pieces.len()));
        }

        let raw_name = match info.find("name.utf-8").and_then(Value::as_bytes) {
            Some(name) => name,
            None => fields::string(info, "name", "info.name")?,
        };
        // A name of which nothing is left is that of no other torrent.
        let name = name::sanitize(raw_name).unwrap_or_else(|| info_hash.to_string());
        let (listed, multi_file) = match (info.find("files"), info.find("length")) {
            (Some(files), _) => (listed::files(files)?, true),
            (None, Some(_)) => (vec![single_file(info, &name, raw_name)?], false),
            (None, None) => return Err(MetainfoError::NoFiles),
        };
        let total_length = total(&listed)?;
        let is_content = |file: &Listed| matches!(file.kind, Kind::Content) && file.length > 0;
        if !listed.iter().any(is_content) {
            return Err(MetainfoError::Empty);
        }
        let expected = total_length.div_ceil(u64::from(piece_length));
        let found = (pieces.len() / 20) as u64;
        if found != expected {
            return Err(MetainfoError::PieceCount {
                found,
                expected,
                total_length,
            });
        }
        if version_two {
            let one = VersionOne {
                name: raw_name,
                piece_length,
                files: &listed,
                multi_file,
            };
            hybrid::check(info, info_bytes, &one)?;
        }
        let (files, links) = placed(&name, listed, multi_file);

        Ok(Self {
            info_hash,
            info_hash_v2: version_two.then(|| Sha256::digest(info_bytes).into()),
            name,
            pieces: Pieces::new(piece_length, total_length),
            piece_hashes: pieces.to_vec(),
            files,
            links,
            multi_file,
            comment: fields::text(top, "comment"),
            created_by: fields::text(top, "created by"),
            creation_date: top.find("creation date").and_then(Value::as_int),
            trackers: trackers(top),
            web_seeds: texts(top.find("url-list")),
            private: info
                .find("private")
                .and_then(Value::as_int)
                .is_some_and(|it| it != 0),
            source: fields::text(info, "source"),
        })
    }
}

/// Whether there is a version 2 part beside that of version 1 (BEP 52).
fn version_two(info: &Dict<'_>) -> Result<bool, MetainfoError> {
    let version = info.find("meta version").and_then(Value::as_int);
    let tree = info.find("file tree").is_some();
    match version {
        Some(version) if version > 2 => Err(MetainfoError::Version(version)),
        _ if info.find("pieces").is_none() && (tree || version == Some(2)) => {
            Err(MetainfoError::VersionTwoOnly)
        }
        Some(2) => Ok(true),
        _ if tree => Err(MetainfoError::Hybrid {
            why: "there is a `file tree`, but no `meta version`".to_owned(),
        }),
        _ => Ok(false),
    }
}

fn single_file(info: &Dict<'_>, name: &str, raw_name: &[u8]) -> Result<Listed, MetainfoError> {
    Ok(Listed {
        path: vec![name.to_owned()],
        original: (name.as_bytes() != raw_name)
            .then(|| String::from_utf8_lossy(raw_name).into_owned()),
        length: fields::length(info, "info.length", || name::printable(raw_name))?,
        kind: Kind::Content,
    })
}

/// The files and links at places of their own, in the torrent's folder if it has one.
fn placed(name: &str, listed: Vec<Listed>, multi_file: bool) -> (Vec<File>, Vec<Link>) {
    let leaves: Vec<(&[String], Leaf<'_>)> = listed
        .iter()
        .filter_map(|file| match &file.kind {
            Kind::Content => Some((file.path.as_slice(), Leaf::File)),
            Kind::Link(target) => Some((file.path.as_slice(), Leaf::Link(target))),
            Kind::Padding => None,
        })
        .collect();
    let (places, mut renamed) = Places::assign(&leaves);
    let mut targets = places.link_targets(&leaves);
    let root = PathBuf::from(if multi_file { name } else { "" });
    let (mut files, mut links) = (Vec::with_capacity(listed.len()), Vec::new());
    let mut leaf = 0;
    for mut file in listed {
        let padding = matches!(file.kind, Kind::Padding);
        let mut target = None;
        if !padding {
            if let Some(new) = renamed.remove(&leaf)
                && let Some(last) = file.path.last_mut()
            {
                let old = std::mem::replace(last, new);
                file.original.get_or_insert_with(|| {
                    let above = &file.path[..file.path.len() - 1];
                    above
                        .iter()
                        .chain([&old])
                        .cloned()
                        .collect::<Vec<_>>()
                        .join("/")
                });
            }
            target = targets.remove(&leaf);
            leaf += 1;
        }
        let path = root.join(file.path.iter().collect::<PathBuf>());
        match file.kind {
            Kind::Link(_) => links.push(Link {
                target: target.map(|target| link_text(&file.path, &target).into()),
                path,
            }),
            Kind::Content | Kind::Padding => files.push(File {
                path,
                original: file.original,
                length: file.length,
                padding,
            }),
        }
    }
    (files, links)
}

fn total(files: &[Listed]) -> Result<u64, MetainfoError> {
    let mut sum: i64 = 0;
    for file in files {
        sum = i64::try_from(file.length)
            .ok()
            .and_then(|length| sum.checked_add(length))
            .ok_or_else(|| MetainfoError::FileLength {
                file: name::printable(file.path.join("/").as_bytes()),
            })?;
    }
    Ok(sum.unsigned_abs())
}

/// The tiers of trackers: `announce-list` if it names any (BEP 12), else `announce`.
fn trackers(top: &Dict<'_>) -> Vec<Vec<String>> {
    let tiers = top.find("announce-list").and_then(Value::as_list);
    let tiers: Vec<Vec<String>> = tiers
        .unwrap_or_default()
        .iter()
        .map(|tier| texts(Some(tier)))
        .filter(|tier| !tier.is_empty())
        .collect();
    match texts(top.find("announce")) {
        announce if tiers.is_empty() && !announce.is_empty() => vec![announce],
        _ => tiers,
    }
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
