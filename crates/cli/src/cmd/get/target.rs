//! What is downloaded: a `.torrent` file, or a magnet link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use hawser_magnet::Magnet;
use hawser_torrent::{InfoHash, Metainfo};

use crate::cmd::files::{self, is_magnet};
use crate::failure::Failure;

/// What is downloaded.
#[derive(Debug, Clone)]
pub enum Target {
    File(PathBuf),
    Magnet(Box<Magnet>),
}

impl Target {
    /// What is known of it.
    ///
    /// # Errors
    /// When the `.torrent` file cannot be read or is not usable.
    pub fn read(&self) -> Result<Known<'_>, Failure> {
        Ok(match self {
            Self::File(file) => Known::Torrent(Box::new(files::metainfo(file)?)),
            Self::Magnet(magnet) => Known::Link(magnet),
        })
    }

    /// The `.torrent` file, if that is what was named.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Magnet(_) => None,
        }
    }
}

/// What is known of the torrent before any peer is asked.
pub enum Known<'a> {
    Torrent(Box<Metainfo>),
    Link(&'a Magnet),
}

impl Known<'_> {
    /// The trackers that it names, in tiers.
    pub fn trackers(&self) -> Vec<Vec<String>> {
        match self {
            Self::Torrent(it) => it.trackers.clone(),
            Self::Link(it) => it.trackers.iter().map(|url| vec![url.clone()]).collect(),
        }
    }

    /// The info-hash that trackers know, and the bytes that are missing as far as that is known.
    pub fn announced(&self) -> (InfoHash, u64) {
        match self {
            Self::Torrent(it) => (it.info_hash, it.pieces.total),
            Self::Link(it) => {
                let v2 = || it.info_hashes.v2?.first_chunk::<20>().copied();
                let hash = it.info_hashes.v1.or_else(v2).unwrap_or_default();
                // Not a seeder.
                (InfoHash(hash), 1)
            }
        }
    }

    /// Whether it names trackers, and whether it names web seeds.
    pub fn sources(&self) -> (bool, bool) {
        match self {
            Self::Torrent(it) => (!it.trackers.is_empty(), !it.web_seeds.is_empty()),
            Self::Link(it) => (!it.trackers.is_empty(), !it.web_seeds.is_empty()),
        }
    }
}

/// Reads an argument that begins like a magnet link as one, any other as the name of a file.
pub fn target() -> impl TypedValueParser<Value = Target> {
    OsStringValueParser::new().try_map(|text: OsString| {
        let magnet = text.to_str().filter(|text| is_magnet(text));
        match magnet {
            Some(link) => link
                .parse()
                .map(|magnet| Target::Magnet(Box::new(magnet)))
                .map_err(|error: hawser_magnet::MagnetError| error.to_string()),
            None => Ok(Target::File(text.into())),
        }
    })
}
