//! What is kept of a torrent: the content of its file on disk.

use std::path::{Path, PathBuf};

use hawser_address::PeerAddr;
use hawser_torrent::{InfoHash, Metainfo};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::choice::check_ratio;
use crate::renames::{self, Rename};
use crate::settings::Settings;
use crate::trackers::{self, Tiers};

/// Most bytes of the name of a torrent that are kept.
pub const MAX_NAME_BYTES: usize = 1024;
/// Most labels of a torrent.
pub const MAX_LABELS: usize = 32;
/// Most bytes of a label.
pub const MAX_LABEL_BYTES: usize = 100;
/// Most peers that users name for a torrent.
pub const MAX_PEERS: usize = 128;

/// What is kept of a torrent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its info-hash, as 40 hexadecimal digits.
    #[serde(with = "hash")]
    pub info_hash: InfoHash,
    /// Its name; of a magnet link without metadata the link's, or its info-hash.
    pub name: String,
    /// What it was added from.
    pub origin: Origin,
    /// Bytes of all its files; `None` without metadata.
    pub size: Option<u64>,
    /// The folder that its content is in.
    pub folder: PathBuf,
    /// Whether it is to run when it is its turn.
    pub started: bool,
    /// Why it does not run though it was started; `None` if nothing keeps it.
    pub outcome: Option<Outcome>,
    /// Its labels.
    pub labels: Vec<String>,
    /// What users have set for it.
    pub settings: Settings,
    /// Its place in the queue: torrents of lower rank come first. No two have the same.
    pub rank: u64,
    /// Peers that users have named.
    #[serde(with = "peers")]
    pub peers: Vec<PeerAddr>,
    /// When what happened.
    pub dates: Dates,
    /// What was transferred, over all runs.
    pub totals: Totals,
    /// What was begun with it and must be finished, also after a crash.
    pub pending: Option<Pending>,
    /// Whether all of its content is to be hashed, also what was verified and has not changed since.
    #[serde(default)]
    pub rechecks: bool,
    /// Whether a program is to be run for its completion.
    #[serde(default)]
    pub announcement: Announcement,
}

/// Whether a program is to be run for the completion of a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announcement {
    /// It is not: nothing was missing when its content was first verified, or it was run.
    #[default]
    None,
    /// Some of its content was missing: it is to be run once it is complete.
    Awaited,
    /// It is complete, and the program is to be run.
    Due,
}

impl Announcement {
    /// The content was verified, and is `complete` or not.
    pub(crate) fn check(&mut self, complete: bool) {
        *self = match (*self, complete) {
            (Self::None | Self::Awaited, false) => Self::Awaited,
            (Self::Awaited, true) => Self::Due,
            // What was completed is announced, though some of it is missing again.
            (kept, _) => kept,
        };
    }
}

/// What a torrent was added from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Its metainfo is kept beside its record.
    Metainfo,
    /// A magnet link (BEP 9); its metadata is not known yet.
    Magnet(String),
}

/// Why a torrent that was started does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has seeded up to a limit.
    Finished(SeedLimit),
    /// It has failed, for this reason.
    Failed(String),
}

/// A limit of seeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedLimit {
    /// Bytes sent, divided by bytes of content.
    Ratio,
    /// Time of seeding.
    Time,
    /// Time without an upload.
    Idle,
}

/// When what happened, in Unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dates {
    /// It was added.
    pub added: u64,
    /// It became complete; `None` while it is not.
    pub completed: Option<u64>,
    /// It transferred something last; `None` if never.
    #[serde(default)]
    pub active: Option<u64>,
    /// It began to run last; `None` if never, or if that was not kept.
    #[serde(default)]
    pub started: Option<u64>,
}

/// What a torrent has transferred, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Bytes of blocks sent.
    pub uploaded: u64,
    /// Bytes of blocks received.
    pub downloaded: u64,
    /// Bytes of its content that were verified when that was last known.
    pub verified: u64,
    /// Time of seeding, in seconds.
    pub seeded: u64,
    /// Time of downloading, in seconds.
    #[serde(default)]
    pub downloading: u64,
}

/// What was begun with a torrent and must be finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// Its content is moved to this folder.
    Move(PathBuf),
    /// Its content is looked for in this folder, once it has ended.
    Find(PathBuf),
    /// A file or folder of it gets another name.
    Rename(Rename),
    /// It is removed, with its content or without.
    Remove {
        /// Whether its content is deleted.
        content: bool,
    },
}

impl Record {
    /// The trackers that the torrent itself names; `None` if they are not known without its metainfo.
    pub(crate) fn named_trackers(&self, metainfo: Option<&Metainfo>) -> Option<Tiers> {
        match (&self.origin, metainfo) {
            (Origin::Magnet(link), _) => {
                let magnet = link.parse();
                Some(magnet.map_or(Tiers::new(), |it| trackers::of_link(&it)))
            }
            (Origin::Metainfo, Some(metainfo)) => Some(metainfo.sources.trackers.clone()),
            (Origin::Metainfo, None) => None,
        }
    }

    /// The trackers of the torrent; `None` if they are not known without its metainfo.
    pub(crate) fn trackers(&self, metainfo: Option<&Metainfo>) -> Option<Tiers> {
        let set = self.settings.trackers.clone();
        set.or_else(|| self.named_trackers(metainfo))
    }

    /// Has its content in this folder until it is complete, if there is one.
    pub(crate) fn begin_in(&mut self, incomplete: Option<&Path>) {
        if let Some(incomplete) = incomplete.filter(|it| *it != self.folder) {
            let folder = std::mem::replace(&mut self.folder, incomplete.to_owned());
            self.settings.destination = Some(folder);
        }
    }

    /// The folder that its content is in once it is complete.
    pub(crate) fn final_folder(&self) -> &Path {
        self.settings.destination.as_ref().unwrap_or(&self.folder)
    }

    /// What is wrong with values that a file may have and no torrent can have; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.name.len() > MAX_NAME_BYTES {
            return Some(format!("the name is longer than {MAX_NAME_BYTES} bytes"));
        }
        if self.peers.len() > MAX_PEERS {
            return Some(format!("more than {MAX_PEERS} peers are named"));
        }
        if !self.folder.is_absolute() {
            return Some(format!(
                "the folder {} is not absolute",
                self.folder.display()
            ));
        }
        let destination = self.settings.destination.as_ref();
        if let Some(folder) = destination.filter(|folder| !folder.is_absolute()) {
            return Some(format!("the folder {} is not absolute", folder.display()));
        }
        let set = self.settings.trackers.as_deref().unwrap_or_default();
        check_labels(&self.labels)
            .or_else(|| check_ratio(self.settings.seeding.ratio))
            .or_else(|| self.settings.files.fault())
            .or_else(|| trackers::fault(set, set))
            .or_else(|| renames::check(&self.settings.renames))
            .or_else(|| match &self.pending {
                Some(Pending::Rename(rename)) => renames::check(std::slice::from_ref(rename)),
                _ => None,
            })
    }
}

/// Cuts a name to what is kept of it.
pub(crate) fn cut_name(name: &mut String) {
    let mut end = MAX_NAME_BYTES.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
}

/// What is wrong with labels.
pub(crate) fn check_labels(labels: &[String]) -> Option<String> {
    if labels.len() > MAX_LABELS {
        return Some(format!("a torrent has at most {MAX_LABELS} labels"));
    }
    let is_wrong = |label: &&String| {
        let odd = |c: char| c.is_control() || c == ',';
        label.is_empty() || label.len() > MAX_LABEL_BYTES || label.contains(odd)
    };
    let wrong = labels.iter().find(is_wrong)?;
    Some(format!(
        "{wrong:?} is not a label: write 1 to {MAX_LABEL_BYTES} bytes without commas"
    ))
}

/// Reads an info-hash from 40 hexadecimal digits, of either case.
pub fn parse_hash(text: &str) -> Option<InfoHash> {
    let digits = text.as_bytes();
    if digits.len() != 40 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut hash = [0; 20];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(InfoHash(hash))
}

mod hash {
    use serde::de::Error;

    use super::*;

    pub fn serialize<S: Serializer>(hash: &InfoHash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(hash)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<InfoHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_hash(&text)
            .ok_or_else(|| D::Error::custom("an info-hash has 40 hexadecimal digits"))
    }
}

mod peers {
    use serde::de::Error;

    use super::*;

    pub fn serialize<S: Serializer>(peers: &[PeerAddr], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(peers.iter().map(ToString::to_string))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PeerAddr>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let peers = texts
            .iter()
            .map(|text| text.parse().map_err(D::Error::custom));
        peers.collect()
    }
}
