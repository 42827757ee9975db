//! What is downloaded: a `.torrent` file, by its name or URL, or a magnet link.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use hawser_client::{FetchError, fetch_torrent, is_url};
use hawser_magnet::Magnet;
use hawser_torrent::{InfoHash, Metainfo};

use crate::cmd::files::{self, is_magnet};
use crate::cmd::find::Sought;
use crate::cmd::process;
use crate::failure::{Doing, Failure};

/// What is downloaded.
#[derive(Debug, Clone)]
pub enum Target {
    File(PathBuf),
    Magnet(Box<Magnet>),
    /// The `.torrent` file at a URL.
    Url(String),
}

impl Target {
    /// What is known of it.
    ///
    /// # Errors
    /// When the `.torrent` file cannot be read or fetched, or is not usable.
    pub fn read(&self) -> Result<Known<'_>, Failure> {
        Ok(match self {
            Self::File(file) => Known::Torrent(Box::new(files::metainfo(file)?)),
            Self::Magnet(magnet) => Known::Link(magnet),
            Self::Url(url) => Known::Torrent(Box::new(fetch(url)?)),
        })
    }

    /// The `.torrent` file, if that is what was named.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Magnet(_) | Self::Url(_) => None,
        }
    }
}

/// Fetches a `.torrent` file.
fn fetch(url: &str) -> Result<Metainfo, Failure> {
    let fetched = process::small_runtime()?.block_on(async {
        let interrupted = process::interrupted()?;
        tokio::select! {
            fetched = fetch_torrent(url) => fetched.map_err(|error| match error {
                FetchError::Url(error) => Failure::usage(error),
                error => Failure::job(error),
            }),
            _ = interrupted => Err(Failure::job("interrupted")),
        }
    });
    Metainfo::parse(&fetched?).doing("the .torrent file at the URL")
}

/// What is known of the torrent before any peer is asked.
pub enum Known<'a> {
    Torrent(Box<Metainfo>),
    Link(&'a Magnet),
}

impl Known<'_> {
    /// What is known for finding its peers.
    pub fn sought(&self) -> Sought {
        match self {
            Self::Torrent(it) => Sought::missing(it),
            Self::Link(it) => {
                let v2 = || it.info_hashes.v2?.first_chunk::<20>().copied();
                let hash = it.info_hashes.v1.or_else(v2).unwrap_or_default();
                Sought {
                    info_hash: InfoHash(hash),
                    trackers: it.trackers.iter().map(|url| vec![url.clone()]).collect(),
                    nodes: Vec::new(),
                    is_private: None,
                    // Not a seeder.
                    left: 1,
                    downloads: true,
                }
            }
        }
    }
}

/// Reads an argument that begins like a magnet link or a URL as one, any other as the name of a file.
pub fn target() -> impl TypedValueParser<Value = Target> {
    OsStringValueParser::new().try_map(|text: OsString| {
        let magnet = text.to_str().filter(|text| is_magnet(text));
        match magnet {
            Some(link) => link
                .parse()
                .map(|magnet| Target::Magnet(Box::new(magnet)))
                .map_err(|error: hawser_magnet::MagnetError| error.to_string()),
            None => Ok(match text.to_str().filter(|text| is_url(text)) {
                Some(url) => Target::Url(url.to_owned()),
                None => Target::File(text.into()),
            }),
        }
    })
}
