//! What a client is shown of a file, a peer, a tracker. Units are as in [`TorrentView`].
//!
//! [`TorrentView`]: crate::TorrentView

use std::ops::Range;

use hawser_address::PeerAddr;

/// A priority; the numbers are Transmission's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Low.
    Low = -1,
    /// Normal.
    #[default]
    Normal = 0,
    /// High.
    High = 1,
}

/// A file of a torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileView {
    /// Its path below the torrent's folder, with the torrent's name, divided by `/`.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Bytes of it that are there.
    pub completed: u64,
    /// Whether it is downloaded.
    pub is_wanted: bool,
    /// Its priority.
    pub priority: Priority,
    /// The pieces that it is in.
    pub pieces: Range<u64>,
}

/// A connected peer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerView {
    /// Its address. A SCION peer is shown as `1-ff00:0:110,10.0.0.1` with its port.
    pub addr: PeerAddr,
    /// The program it runs, as far as it is known.
    pub client: String,
    /// Its peer id (BEP 3).
    pub id: [u8; 20],
    /// The fraction of the content that it has.
    pub progress: f64,
    /// Bytes a second from it.
    pub down_rate: u64,
    /// Bytes a second to it.
    pub up_rate: u64,
    /// Bytes from it.
    pub downloaded: u64,
    /// Bytes to it.
    pub uploaded: u64,
    /// What it does.
    pub flags: PeerFlags,
}

/// What a peer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerFlags {
    /// It chokes us.
    pub chokes_us: bool,
    /// We are interested in it.
    pub interests_us: bool,
    /// We choke it.
    pub is_choked: bool,
    /// It is interested in us.
    pub is_interested: bool,
    /// It sends to us.
    pub is_sending: bool,
    /// It gets from us.
    pub is_getting: bool,
    /// It is unchoked to find out how fast it is.
    pub is_optimistic: bool,
    /// The connection is encrypted.
    pub is_encrypted: bool,
    /// It has connected to us.
    pub is_incoming: bool,
    /// The connection is uTP (BEP 29).
    pub is_utp: bool,
    /// It is known from the DHT (BEP 5).
    pub is_from_dht: bool,
    /// It is known from other peers (BEP 11).
    pub is_from_pex: bool,
}

impl PeerFlags {
    /// Transmission's text of flags: a letter for each that holds.
    pub(crate) fn text(self) -> String {
        let waits_for = self.interests_us && !self.is_sending;
        let lets_wait = self.is_interested && !self.is_getting;
        let letters = [
            (self.is_utp, 'T'),
            (self.is_optimistic, 'O'),
            (self.is_sending, 'D'),
            (waits_for, 'd'),
            (self.is_getting, 'U'),
            (lets_wait, 'u'),
            (!self.chokes_us && !self.interests_us, 'K'),
            (!self.is_choked && !self.is_interested, '?'),
            (self.is_encrypted, 'E'),
            (self.is_from_dht, 'H'),
            (self.is_from_pex, 'X'),
            (self.is_incoming, 'I'),
        ];
        let held = letters.iter().filter(|(holds, _)| *holds);
        held.map(|(_, letter)| *letter).collect()
    }
}

/// A tracker of a torrent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerView {
    /// Its number, which calls that change trackers name it by. Unique within a torrent.
    pub id: u64,
    /// Its tier, from 0 (BEP 12).
    pub tier: u64,
    /// Its announce URL.
    pub announce: String,
    /// Its scrape URL (BEP 48), or nothing.
    pub scrape: String,
    /// Whether another one of its tier is in use.
    pub is_backup: bool,
    /// Announces.
    pub announces: Requests,
    /// Scrapes.
    pub scrapes: Requests,
    /// Peers in the last answer to an announce.
    pub peers: u64,
    /// Seeders it knows of.
    pub seeders: Option<u64>,
    /// Leechers it knows of.
    pub leechers: Option<u64>,
    /// Complete downloads it knows of.
    pub downloads: Option<u64>,
    /// Downloaders it knows of: leechers that want content (BEP 21).
    pub downloaders: Option<u64>,
}

/// Requests to a tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// What happens now.
    pub state: RequestState,
    /// When the last one began.
    pub begun: i64,
    /// When the last one ended.
    pub ended: i64,
    /// When the next one is due.
    pub next: i64,
    /// How the last one ended, if there was one.
    pub outcome: Option<Outcome>,
}

/// What happens now with requests to a tracker; the numbers are Transmission's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestState {
    /// None is planned.
    #[default]
    Inactive = 0,
    /// One is planned for a time.
    Waiting = 1,
    /// One is due and waits for its turn.
    Queued = 2,
    /// One is under way.
    Active = 3,
}

/// How a request to a tracker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Success,
    /// Without one in time.
    TimedOut,
    /// With a failure of this reason.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_letters() {
        let quiet = PeerFlags {
            chokes_us: true,
            is_choked: true,
            ..PeerFlags::default()
        };
        assert_eq!(quiet.text(), "");
        assert_eq!(PeerFlags::default().text(), "K?");
        let busy = PeerFlags {
            interests_us: true,
            is_interested: true,
            is_sending: true,
            is_encrypted: true,
            is_from_pex: true,
            is_incoming: true,
            ..PeerFlags::default()
        };
        assert_eq!(busy.text(), "DuEXI");
    }
}
