//! Bodies of requests and answers of the API. The command line reads and writes the same types.

mod added;
mod alternative;
mod groups;
mod limit;
mod look;
mod network;
mod queue;
mod trackers;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::files::{self, FileChanges, FilePriority};
use crate::groups::BandwidthPriority;
use crate::record::{Outcome, SeedLimit};
use crate::view::View;

pub use self::added::{AddedTorrent, Merged};
pub use self::alternative::{AlternativeChange, AlternativeRates, Day, Schedule, ScheduleChange};
pub use self::groups::{Group, GroupChange};
pub use self::limit::{Limit, LimitWord, RateLimit, RateWord};
pub use self::look::{
    Changes, FullPeer, Hop, PeerFlags, PeerPath, Peers, Pieces, RatesOverTime, Session, SignIn,
};
pub use self::network::{NetworkChange, NetworkState};
pub use self::queue::{Queue, QueueChange};
pub use self::trackers::{Tracker, Trackers, TrackersChange};

/// The torrents of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Torrents {
    /// They, in the order of the queue.
    pub torrents: Vec<Torrent>,
}

/// A torrent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Torrent {
    /// Its info-hash, 40 hexadecimal digits.
    #[schema(examples("0123456789abcdef0123456789abcdef01234567"))]
    pub info_hash: String,
    /// Its name.
    pub name: String,
    /// What it does: stopped, queued, check-queued, resolving, checking, downloading, seeding, stopping,
    /// moving, removing, finished or failed.
    pub status: String,
    /// Why it has failed.
    pub error: Option<String>,
    /// Why it cannot get on, and what helps; none if nothing is known that keeps it.
    #[serde(default)]
    pub hint: Option<String>,
    /// The limit that has ended its seeding: ratio, time or idle.
    pub finished_by: Option<String>,
    /// Its position in the queue, from 0.
    #[schema(minimum = 0)]
    pub position: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// The folder that its content is in.
    pub folder: String,
    /// The folder that its content is moved to once all that is wanted of it is there; none if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Its content.
    pub content: Content,
    /// What it transfers.
    pub traffic: Traffic,
    /// When its seeding ends.
    pub limits: Limits,
    /// Whether the content is fetched from its beginning to its end.
    #[serde(default)]
    pub sequential: bool,
    /// When it was added, in Unix seconds.
    #[schema(minimum = 0)]
    pub added: u64,
    /// When it became complete, in Unix seconds.
    #[schema(minimum = 0)]
    pub completed: Option<u64>,
}

/// How much of the content there is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Content {
    /// Bytes of all files; none while the metadata is not known.
    #[schema(minimum = 0)]
    pub bytes: Option<u64>,
    /// Bytes that are verified, when that was last known.
    #[schema(minimum = 0)]
    pub verified_bytes: u64,
    /// The fraction of the files that are downloaded that is verified, from 0 to 1; none while that is not
    /// known.
    pub done: Option<f64>,
    /// Bytes of the files that are downloaded that are not verified; none while that is not known.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub left_bytes: Option<u64>,
    /// The fraction that is hashed, from 0 to 1, while it is checked.
    pub checked: Option<f64>,
}

/// What a torrent transfers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Traffic {
    /// Rate of blocks received, in bit/s.
    #[schema(minimum = 0)]
    pub download_rate: u64,
    /// Rate of blocks sent, in bit/s.
    #[schema(minimum = 0)]
    pub upload_rate: u64,
    /// Bytes of blocks received, over all runs.
    #[schema(minimum = 0)]
    pub downloaded_bytes: u64,
    /// Bytes of blocks sent, over all runs.
    #[schema(minimum = 0)]
    pub uploaded_bytes: u64,
    /// Bytes sent, divided by the bytes of the content.
    pub ratio: f64,
    /// Time of seeding, in seconds.
    #[schema(minimum = 0)]
    pub seeded_seconds: u64,
    /// Path-level peers that are connected.
    #[schema(minimum = 0)]
    pub peers: u64,
}

/// When the seeding of a torrent ends, and how fast it sends and receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// At this ratio of bytes sent to bytes of content.
    pub ratio: Limit,
    /// After this time of seeding, in seconds.
    pub seconds: Limit,
    /// After this time without an upload, in seconds.
    #[serde(default)]
    pub idle_seconds: Limit,
    /// Most bits of blocks that it receives a second.
    pub download_rate: RateLimit,
    /// Most bits of blocks that it sends a second.
    pub upload_rate: RateLimit,
    /// The bandwidth group that it is in: the limits of that hold, too.
    #[serde(default)]
    pub group: Option<String>,
    /// Whether neither the limits of its group nor those of all torrents hold for it.
    #[serde(default)]
    pub exempt: bool,
    /// How much it gets of these limits, while their torrents want more than there is.
    #[serde(default)]
    pub priority: BandwidthPriority,
    /// Most peers that it is connected to.
    pub max_peers: Limit,
}

/// A torrent with its files, peers and trackers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Detail {
    /// The torrent.
    pub torrent: Torrent,
    /// Its files, in the order of the metainfo; none while that is not known.
    pub files: Vec<File>,
    /// The path-level peers that are connected.
    pub peers: Vec<Peer>,
    /// Its trackers.
    pub trackers: Vec<Tracker>,
}

/// A file of a torrent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct File {
    /// Its path below the folder.
    pub path: String,
    /// Its length in bytes.
    #[schema(minimum = 0)]
    pub bytes: u64,
    /// Its index in the metainfo, from 0. Padding has one, too, and is not listed.
    #[schema(minimum = 0)]
    pub index: u32,
    /// Whether it is downloaded.
    pub wanted: bool,
    /// Its priority among the files that are downloaded.
    pub priority: FilePriority,
    /// Its bytes that are verified, or were when the torrent last ran; none while that is not known.
    #[schema(minimum = 0)]
    pub verified_bytes: Option<u64>,
}

/// A path-level peer that is connected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// Its address, as `1-ff00:0:110,10.0.0.1:6881` or `10.0.0.1:6881`.
    pub address: String,
    /// The fingerprint of the path; the same for every IP peer.
    pub path: String,
    /// Rate of blocks received, in bit/s.
    #[schema(minimum = 0)]
    pub download_rate: u64,
    /// Rate of blocks sent, in bit/s.
    #[schema(minimum = 0)]
    pub upload_rate: u64,
    /// Bytes of blocks received.
    #[schema(minimum = 0)]
    pub downloaded_bytes: u64,
    /// Bytes of blocks sent.
    #[schema(minimum = 0)]
    pub uploaded_bytes: u64,
    /// Smoothed round-trip time, in ms.
    pub rtt_ms: Option<f64>,
}

/// A torrent to add: either `metainfo` or `magnet` is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTorrent {
    /// The bytes of a .torrent file, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metainfo: Option<String>,
    /// A magnet link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub magnet: Option<String>,
    /// A URL of HTTP or HTTPS, from which the daemon fetches the .torrent file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The folder for its content, an absolute path; that of the daemon when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether it waits until it is started; as `starts_added` of the daemon's `queue` says when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<bool>,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Addresses of peers to ask, besides those that are found.
    #[serde(default)]
    pub peers: Vec<String>,
    /// What is wanted of files, in this order; all are when not given.
    #[serde(default)]
    pub files: Vec<FileChange>,
    /// Whether the content is fetched from its beginning to its end.
    #[serde(default)]
    pub sequential: bool,
}

impl NewTorrent {
    /// Adds it from the bytes of a `.torrent` file.
    pub fn set_metainfo(&mut self, bytes: &[u8]) {
        self.metainfo = Some(BASE64.encode(bytes));
    }
}

/// A change to a torrent. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TorrentChange {
    /// All its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The ratio at which its seeding ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Limit>,
    /// The time of seeding, in seconds, after which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Limit>,
    /// The time without an upload, in seconds, after which its seeding ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<Limit>,
    /// Its position in the queue, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub position: Option<u32>,
    /// The folder that its content is moved to, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Most bits of blocks that it receives a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download_rate: Option<RateLimit>,
    /// Most bits of blocks that it sends a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_rate: Option<RateLimit>,
    /// Its bandwidth group, which is made if it is not there; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether neither the limits of its group nor those of all torrents hold for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<bool>,
    /// How much it gets of these limits, while their torrents want more than there is: each priority four times
    /// as much as the one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<BandwidthPriority>,
    /// Most peers that it is connected to. Where it is connected to more, the least useful ones are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_peers: Option<Limit>,
    /// What is wanted of files, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Whether the content is fetched from its beginning to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<bool>,
    /// What its trackers become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trackers: Option<Trackers>,
    /// Another name of a file or folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<Rename>,
}

/// Another name of a file or folder of a torrent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// Its path below the folder of the torrent, as the file has it: that of the torrent's name, or one that begins with it.
    pub path: String,
    /// Its name, in the same folder.
    pub name: String,
}

/// A change of what is wanted of files. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    /// The indices of the files in the metainfo, from 0; all files when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indices: Option<Vec<u32>>,
    /// Whether they are downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<bool>,
    /// Their priority among the files that are downloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<FilePriority>,
}

/// What these say of files.
pub(crate) fn file_changes(each: Vec<FileChange>, is_sequential: Option<bool>) -> FileChanges {
    let each = each.into_iter().map(|change| files::FileChange {
        files: change
            .indices
            .map_or(files::Files::All, files::Files::These),
        is_wanted: change.wanted,
        priority: change.priority,
    });
    FileChanges {
        each: each.collect(),
        is_sequential,
    }
}

/// The daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct About {
    /// Its version.
    pub version: String,
    /// The folder for torrents that are added without one.
    pub download_dir: String,
    /// The folder for content until all that is wanted of it is there; none if it is where it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_dir: Option<String>,
    /// The SCION address at which peers connect.
    pub scion: Option<String>,
    /// The address at which IP peers connect.
    pub tcp: Option<String>,
    /// The mapping of that port by the gateway of this network, if it is asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_mapping: Option<PortMapping>,
    /// How many torrents there are.
    #[schema(minimum = 0)]
    pub torrents: u64,
    /// Most bits of blocks that all torrents together receive a second.
    pub download_rate: RateLimit,
    /// Most bits of blocks that all torrents together send a second.
    pub upload_rate: RateLimit,
    /// The limits of rates that hold in place of these two at times.
    pub alternative: AlternativeRates,
    /// The bandwidth groups.
    pub groups: Vec<Group>,
    /// Most peers that all torrents together are connected to.
    #[schema(minimum = 0)]
    pub max_peers: u64,
    /// Most peers that a torrent is connected to that does not say.
    #[schema(minimum = 0)]
    pub max_torrent_peers: u64,
    /// How many torrents run at once, and when seeding ends.
    #[serde(default)]
    pub queue: Queue,
    /// How peers are reached.
    pub network: NetworkState,
}

/// A mapping of the port of IP peers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortMapping {
    /// `asking`, `mapped` or `failed`.
    pub state: String,
    /// The address of the gateway on its other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The TCP port there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<u16>,
    /// The UDP port there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<u16>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<crate::port_mapping::PortMapping> for PortMapping {
    fn from(mapping: crate::port_mapping::PortMapping) -> Self {
        let state = |state: &str| Self {
            state: state.to_owned(),
            ..Self::default()
        };
        match mapping {
            crate::port_mapping::PortMapping::Asking => state("asking"),
            crate::port_mapping::PortMapping::Mapped { address, tcp, udp } => Self {
                address: address.map(|address| address.to_string()),
                tcp,
                udp,
                ..state("mapped")
            },
            crate::port_mapping::PortMapping::Failed(reason) => Self {
                reason: Some(reason),
                ..state("failed")
            },
        }
    }
}

/// A change to the daemon. What is not given stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DaemonChange {
    /// Most bits of blocks that all torrents together receive a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download_rate: Option<RateLimit>,
    /// Most bits of blocks that all torrents together send a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_rate: Option<RateLimit>,
    /// The limits of rates that hold in place of these two at times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<AlternativeChange>,
    /// Changes to bandwidth groups, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupChange>,
    /// Most peers that all torrents together are connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub max_peers: Option<u32>,
    /// Most peers that a torrent is connected to that does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub max_torrent_peers: Option<u32>,
    /// How many torrents run at once, and when seeding ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueChange>,
    /// How peers are reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkChange>,
    /// The folder for torrents that are added without one from now on, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download_dir: Option<String>,
    /// The folder for content until all that is wanted of it is there, for torrents that are added from now on: an
    /// absolute path, or empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_dir: Option<String>,
}

impl From<&View> for Torrent {
    fn from(view: &View) -> Self {
        let (record, rates) = (&view.record, view.rates());
        let finished_by = match record.outcome {
            Some(Outcome::Finished(SeedLimit::Ratio)) => Some("ratio".to_owned()),
            Some(Outcome::Finished(SeedLimit::Time)) => Some("time".to_owned()),
            Some(Outcome::Finished(SeedLimit::Idle)) => Some("idle".to_owned()),
            _ => None,
        };
        Self {
            info_hash: record.info_hash.to_string(),
            name: record.name.clone(),
            status: view.status.name().to_owned(),
            error: view.error().map(ToOwned::to_owned),
            hint: view.hint().map(ToOwned::to_owned),
            finished_by,
            position: view.position as u64,
            labels: record.labels.clone(),
            folder: record.folder.display().to_string(),
            destination: record
                .settings
                .destination
                .as_ref()
                .map(|it| it.display().to_string()),
            content: Content {
                bytes: record.size,
                verified_bytes: view.verified(),
                done: view.done(),
                left_bytes: view.left(),
                checked: view.checked(),
            },
            traffic: Traffic {
                download_rate: rates.down,
                upload_rate: rates.up,
                downloaded_bytes: record.totals.downloaded,
                uploaded_bytes: record.totals.uploaded,
                ratio: view.ratio(),
                seeded_seconds: record.totals.seeded,
                peers: rates.peers as u64,
            },
            limits: Limits {
                ratio: record.settings.seeding.ratio.into(),
                seconds: record.settings.seeding.time.into(),
                idle_seconds: record.settings.seeding.idle.into(),
                download_rate: record.settings.rates.download.in_force().into(),
                upload_rate: record.settings.rates.upload.in_force().into(),
                group: Some(record.settings.group.clone()).filter(|name| !name.is_empty()),
                exempt: record.settings.is_exempt,
                priority: record.settings.priority,
                max_peers: Limit::of_peers(record.settings.max_peers),
            },
            sequential: record.settings.files.is_sequential,
            added: record.dates.added,
            completed: record.dates.completed,
        }
    }
}
