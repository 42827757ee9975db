//! What is looked at while a torrent runs: its peers, pieces and rates; and what has changed.

use data_encoding::BASE64;
use hawser_torrent::PieceMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Torrent;
use crate::history::Sample;
use crate::peers::{PathView, PeerView};

/// The peers of a torrent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Peers {
    /// They, in the order of their addresses; none while it does not run.
    pub peers: Vec<FullPeer>,
}

/// An address-level peer, with the paths to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FullPeer {
    /// Its address, as `1-ff00:0:110,10.0.0.1:6881` or `10.0.0.1:6881`.
    pub address: String,
    /// The name of its program, as it says.
    pub client: Option<String>,
    /// The fraction of the pieces that it has, from 0 to 1; none while it is not connected.
    pub done: Option<f64>,
    /// What it wants and does; none while it is not connected.
    pub flags: Option<PeerFlags>,
    /// Why it is not connected, as far as that is known.
    pub trouble: Option<String>,
    /// Rate of blocks received over all paths, in bit/s.
    #[schema(minimum = 0)]
    pub download_rate: u64,
    /// Rate of blocks sent over all paths, in bit/s.
    #[schema(minimum = 0)]
    pub upload_rate: u64,
    /// The paths to it that are known; one for an IP peer.
    pub paths: Vec<PeerPath>,
}

/// What a peer wants and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerFlags {
    /// It opened all connections with it.
    pub incoming: bool,
    /// It wants blocks.
    pub interested: bool,
    /// Its requests are answered.
    pub served: bool,
    /// It has what is wanted here.
    pub interesting: bool,
    /// It answers requests.
    pub serves: bool,
    /// It downloads nothing.
    pub upload_only: bool,
}

/// A path to a peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PeerPath {
    /// Its fingerprint; the same for every IP peer.
    pub fingerprint: String,
    /// What the connection over it does: left, dialing, idle, active, stalled or waiting.
    pub state: String,
    /// Why it is used or not.
    pub reason: Option<String>,
    /// Why the last connection over it ended.
    pub error: Option<String>,
    /// The ASes on it, as far as they are known; none for an IP peer.
    pub hops: Vec<Hop>,
    /// Rate of blocks received over it, in bit/s.
    #[schema(minimum = 0)]
    pub download_rate: u64,
    /// Rate of blocks sent over it, in bit/s.
    #[schema(minimum = 0)]
    pub upload_rate: u64,
    /// Bytes of blocks received over it.
    #[schema(minimum = 0)]
    pub downloaded_bytes: u64,
    /// Bytes of blocks sent over it.
    #[schema(minimum = 0)]
    pub uploaded_bytes: u64,
    /// Smoothed round-trip time, in ms; none while not connected.
    pub rtt_ms: Option<f64>,
}

/// An AS on a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hop {
    /// Its ISD-AS number.
    pub isd_as: String,
    /// The interface at which the path enters it; none at the beginning.
    #[schema(minimum = 0)]
    pub ingress: Option<u16>,
    /// The interface at which the path leaves it; none at the end.
    #[schema(minimum = 0)]
    pub egress: Option<u16>,
}

impl FullPeer {
    /// A peer of a torrent with this number of pieces.
    pub(crate) fn new(peer: PeerView, pieces: u32) -> Self {
        let (paths, state) = (&peer.paths, &peer.state);
        Self {
            address: peer.address.to_string(),
            client: state
                .as_ref()
                .and_then(|it| it.client.as_deref())
                .map(ToOwned::to_owned),
            done: state.as_ref().map(|it| match pieces {
                0 => 0.0,
                _ => f64::from(it.pieces) / f64::from(pieces),
            }),
            flags: state.as_ref().map(|it| PeerFlags {
                incoming: it.is_incoming,
                interested: it.is_interested,
                served: it.is_served,
                interesting: it.is_interesting,
                serves: it.serves,
                upload_only: it.is_upload_only,
            }),
            trouble: peer.trouble,
            download_rate: paths.iter().map(|path| path.down).sum(),
            upload_rate: paths.iter().map(|path| path.up).sum(),
            paths: peer.paths.into_iter().map(PeerPath::from).collect(),
        }
    }
}

impl From<PathView> for PeerPath {
    fn from(path: PathView) -> Self {
        let hops = path.hops.into_iter().map(|hop| Hop {
            isd_as: hop.isd_as,
            ingress: hop.ingress,
            egress: hop.egress,
        });
        Self {
            fingerprint: path.fingerprint,
            state: path.state,
            reason: path.reason,
            error: path.error,
            hops: hops.collect(),
            download_rate: path.down,
            upload_rate: path.up,
            downloaded_bytes: path.downloaded,
            uploaded_bytes: path.uploaded,
            rtt_ms: path.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
        }
    }
}

/// Which pieces of a torrent are verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pieces {
    /// How many there are; 0 while the metadata is not known.
    #[schema(minimum = 0)]
    pub count: u32,
    /// Bytes of each but the last.
    #[schema(minimum = 0)]
    pub length: u32,
    /// One bit for each, 1 if it is verified, in base64: the high bit of the first byte is that of the first
    /// piece (BEP 3), or 1 if it was verified when the torrent last ran. None while that is not known.
    pub verified: Option<String>,
}

impl Pieces {
    /// Pieces of this length, of which those of `map` are verified.
    pub(crate) fn new(count: u32, length: u32, map: Option<&PieceMap>) -> Self {
        Self {
            count,
            length,
            verified: map.map(|map| BASE64.encode(map.as_bytes())),
        }
    }
}

/// The rates of a torrent in its present run, of the last five minutes, one sample a second. The lists are
/// equally long; none of them has anything while it does not run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RatesOverTime {
    /// The age of each sample, in ms, from the oldest on.
    pub age_ms: Vec<u64>,
    /// Rates of blocks received, in bit/s.
    pub download_rate: Vec<u64>,
    /// Rates of blocks sent, in bit/s.
    pub upload_rate: Vec<u64>,
}

impl From<Vec<Sample>> for RatesOverTime {
    fn from(samples: Vec<Sample>) -> Self {
        let mut rates = Self::default();
        for sample in samples {
            let age = sample.at.as_millis();
            rates.age_ms.push(u64::try_from(age).unwrap_or(u64::MAX));
            rates.download_rate.push(sample.down);
            rates.upload_rate.push(sample.up);
        }
        rates
    }
}

/// What has changed of the torrents since an answer before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Changes {
    /// What the next request gives as `since`.
    pub cursor: String,
    /// Whether `torrents` are all that there are. They are if nothing was given as `since`, or an answer of
    /// long ago or before a restart.
    pub whole: bool,
    /// The torrents that are new or have changed, in any order.
    pub torrents: Vec<Torrent>,
    /// The info-hashes of those that were removed.
    pub removed: Vec<String>,
}

/// The body of a sign-in.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The token of the daemon.
    pub token: String,
}

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The version of the daemon.
    pub version: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_peer_has_the_rates_of_its_paths() {
        let path = |down, up| PathView {
            down,
            up,
            rtt: Some(Duration::from_micros(1500)),
            ..PathView::default()
        };
        let mut state = hawser_torrent::PeerState::default();
        (state.pieces, state.serves) = (3, true);
        let peer = PeerView {
            address: "10.0.0.1:6881".parse().unwrap(),
            state: Some(state),
            trouble: None,
            paths: vec![path(8, 1), path(16, 2)],
        };
        let shown = FullPeer::new(peer.clone(), 4);
        assert_eq!((shown.download_rate, shown.upload_rate), (24, 3));
        assert_eq!((shown.done, shown.paths[0].rtt_ms), (Some(0.75), Some(1.5)));
        assert!(
            shown
                .flags
                .is_some_and(|flags| flags.serves && !flags.served)
        );
        // Before the pieces are known, and before it is connected.
        assert_eq!(FullPeer::new(peer.clone(), 0).done, Some(0.0));
        let away = FullPeer::new(
            PeerView {
                state: None,
                ..peer
            },
            4,
        );
        assert_eq!((away.done, away.flags), (None, None));
    }

    #[test]
    fn samples_are_lists_of_equal_length() {
        let sample = |seconds, down| Sample {
            at: Duration::from_secs(seconds),
            down,
            up: 1,
        };
        let rates = RatesOverTime::from(vec![sample(2, 5), sample(1, 6)]);
        assert_eq!(rates.age_ms, [2000, 1000]);
        assert_eq!(
            (rates.download_rate, rates.upload_rate),
            (vec![5, 6], vec![1, 1])
        );
    }
}
