//! The handshake: the first 68 bytes in each direction (BEP 3), and the extended one that may follow
//! (BEP 10).

use hawser_bencode::{self as bencode, Value};

use super::error::WireError;
use super::exchange::{SCION_PEX_NAME, UT_PEX_NAME};
use super::multipath::MULTIPATH_NAME;
use hawser_magnet::InfoHash;

/// Length of a handshake, in bytes.
pub const HANDSHAKE_BYTES: usize = 68;

const PROTOCOL: &[u8; 20] = b"\x13BitTorrent protocol";

/// The reserved byte and its bit that stand for extended messages (BEP 10).
const EXTENDED: (usize, u8) = (5, 0x10);

/// The reserved byte and its bit that stand for the DHT (BEP 5).
const DHT: (usize, u8) = (7, 0x01);

/// The reserved byte and its bit that stand for torrents of version 2 (BEP 52).
const VERSION_TWO: (usize, u8) = (7, 0x10);

/// The info-hash in the answer to a handshake for a torrent that is not served here. The peer
/// learns that (BEP 3: both sides end the connection if the values differ), but not what is served.
const NO_TORRENT: InfoHash = InfoHash([0; 20]);

/// The codes of well-known programs in their ids (BEP 20).
const PROGRAMS: [(&str, &str); 9] = [
    ("AZ", "Vuze"),
    ("DE", "Deluge"),
    ("HW", "hawser"),
    ("LT", "libtorrent"),
    ("TR", "Transmission"),
    ("UT", "µTorrent"),
    ("WW", "WebTorrent"),
    ("lt", "rTorrent"),
    ("qB", "qBittorrent"),
];

/// How ids of this program begin.
const OWN: &[u8] = b"-HW";

/// The id of a running program (`peer_id`, BEP 3), new for every torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerId(pub [u8; 20]);

impl PeerId {
    /// Its last 8 bytes, which are random in all programs.
    pub fn short(&self) -> u64 {
        let tail = self.0.iter().rev().take(8);
        tail.fold(0, |short, byte| short << 8 | u64::from(*byte))
    }

    /// A new id: `-HW` and the version, then random bytes (BEP 20).
    pub fn random() -> Self {
        let mut id = *b"-HW0100-............";
        fastrand::Rng::new().fill(&mut id[8..]);
        Self(id)
    }

    /// Whether the id names this program, of any version.
    pub fn is_hawser(&self) -> bool {
        self.0.starts_with(OWN)
    }

    /// The program and its version that an id of the usual form names, `-qB4650-` as `qBittorrent 4.6.5.0`
    /// (BEP 20); `None` for one of another form.
    pub fn client(&self) -> Option<String> {
        let [b'-', name @ .., _, _, _, _, b'-'] = &self.0[..8] else {
            return None;
        };
        let digits = &self.0[3..7];
        if !name.iter().chain(digits).all(u8::is_ascii_alphanumeric) {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        let known = PROGRAMS.iter().find(|(code, _)| *code == name);
        let version: Vec<String> = digits
            .iter()
            .map(|it| char::from(*it).to_string())
            .collect();
        Some(format!(
            "{} {}",
            known.map_or(name, |(_, program)| program),
            version.join(".")
        ))
    }
}

/// The id of a program in a torrent (`peer_id`, BEP 20), as it is announced to trackers: a new one each
/// time.
pub fn new_peer_id() -> [u8; 20] {
    PeerId::random().0
}

/// The first message of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// The torrent.
    pub info_hash: InfoHash,
    /// The id of the program.
    pub peer_id: PeerId,
    /// Whether it understands extended messages (BEP 10).
    pub extended: bool,
    /// Whether it has a node of the DHT, and takes `PORT` messages (BEP 5).
    pub dht: bool,
    /// Whether it understands torrents of version 2, and messages about their hashes (BEP 52).
    pub version_two: bool,
}

impl Handshake {
    /// The answer to a peer that requests another torrent.
    pub fn refusal(&self) -> Self {
        Self {
            info_hash: NO_TORRENT,
            ..*self
        }
    }

    /// Encodes it.
    pub fn encode(&self) -> [u8; HANDSHAKE_BYTES] {
        let mut out = [0; HANDSHAKE_BYTES];
        out[..20].copy_from_slice(PROTOCOL);
        for ((byte, bit), is_set) in [
            (EXTENDED, self.extended),
            (DHT, self.dht),
            (VERSION_TWO, self.version_two),
        ] {
            if is_set {
                out[20 + byte] |= bit;
            }
        }
        out[28..48].copy_from_slice(&self.info_hash.0);
        out[48..].copy_from_slice(&self.peer_id.0);
        out
    }

    /// The torrent that a handshake is for.
    ///
    /// # Errors
    /// If it is not BitTorrent.
    pub fn info_hash(bytes: &[u8; HANDSHAKE_BYTES]) -> Result<InfoHash, WireError> {
        if &bytes[..20] != PROTOCOL {
            return Err(WireError::NotBitTorrent);
        }
        Ok(InfoHash(std::array::from_fn(|offset| bytes[28 + offset])))
    }

    /// Decodes a handshake for the torrent with the info-hashes `expected`. Any of them may stand in it:
    /// of a hybrid, libtorrent answers that of version 1 with that of version 2 (BEP 52, "Upgrade Path").
    ///
    /// # Errors
    /// If it is not BitTorrent, or for another torrent.
    pub fn decode(bytes: &[u8; HANDSHAKE_BYTES], expected: &[InfoHash]) -> Result<Self, WireError> {
        let info_hash = Self::info_hash(bytes)?;
        if info_hash == NO_TORRENT {
            return Err(WireError::NotThisTorrent);
        }
        if !expected.contains(&info_hash) {
            return Err(WireError::WrongInfoHash(info_hash));
        }
        Ok(Self {
            info_hash,
            peer_id: PeerId(std::array::from_fn(|offset| bytes[48 + offset])),
            extended: bytes[20 + EXTENDED.0] & EXTENDED.1 != 0,
            dht: bytes[20 + DHT.0] & DHT.1 != 0,
            version_two: bytes[20 + VERSION_TWO.0] & VERSION_TWO.1 != 0,
        })
    }
}

/// The name of the extension that passes on the info dictionary (BEP 9), and the id under which this
/// program receives its messages.
const UT_METADATA_NAME: &str = "ut_metadata";
/// The id of `ut_metadata`.
pub const UT_METADATA: u8 = 4;

/// The extended message that is the handshake.
pub const EXTENDED_HANDSHAKE: u8 = 0;

/// Longest client name kept, in bytes.
const MAX_NAME: usize = 128;

/// What each side announces in its first extended message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtendedHandshake {
    /// The client's name and version (`v`).
    pub client: Option<String>,
    /// Requests that it queues before it drops some (`reqq`).
    pub request_queue: Option<u32>,
    /// The port it listens on (`p`).
    pub port: Option<u16>,
    /// The id under which it receives `scion_multipath` messages; `None` if it does not support them.
    pub multipath: Option<u8>,
    /// The id under which it receives `ut_pex` messages.
    pub ut_pex: Option<u8>,
    /// The id under which it receives `scion_pex` messages.
    pub scion_pex: Option<u8>,
    /// The id under which it receives `ut_metadata` messages (BEP 9).
    pub ut_metadata: Option<u8>,
    /// Length of the info dictionary in bytes, if it has it (BEP 9).
    pub metadata_size: Option<u32>,
    /// Whether it only uploads, and never gets the pieces that it lacks (`upload_only`, BEP 21).
    pub upload_only: bool,
}

impl ExtendedHandshake {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        let id = |id: Option<u8>| id.map(|id| Value::Int(id.into()));
        let messages = Value::dict([
            (MULTIPATH_NAME, id(self.multipath)),
            (SCION_PEX_NAME, id(self.scion_pex)),
            (UT_METADATA_NAME, id(self.ut_metadata)),
            (UT_PEX_NAME, id(self.ut_pex)),
        ]);
        let top = Value::dict([
            ("m", Some(messages)),
            (
                "metadata_size",
                self.metadata_size.map(|size| Value::Int(size.into())),
            ),
            ("p", self.port.map(|port| Value::Int(port.into()))),
            (
                "reqq",
                self.request_queue.map(|queue| Value::Int(queue.into())),
            ),
            ("upload_only", self.upload_only.then_some(Value::Int(1))),
            ("v", self.client.as_deref().map(Value::text)),
        ]);
        top.encode()
    }

    /// Decodes a handshake; what is unknown or of another type is ignored (BEP 10). Keys may be in any order:
    /// KTorrent does not sort them.
    ///
    /// # Errors
    /// If it does not begin with a bencoded dictionary.
    pub fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let document = bencode::parse_tolerant(payload).map_err(WireError::BadExtended)?;
        let top = document.as_dict().ok_or(WireError::ExtendedNoDict)?;
        let client = top.bytes("v").map(|bytes| {
            let bytes = &bytes[..bytes.len().min(MAX_NAME)];
            String::from_utf8_lossy(bytes).escape_debug().to_string()
        });
        // An id of 0 switches an extension off (BEP 10).
        let id = |name| {
            let id = u8::try_from(top.dict("m")?.int(name)?).ok();
            id.filter(|id| *id != EXTENDED_HANDSHAKE)
        };
        Ok(Self {
            multipath: id(MULTIPATH_NAME),
            ut_pex: id(UT_PEX_NAME),
            scion_pex: id(SCION_PEX_NAME),
            ut_metadata: id(UT_METADATA_NAME),
            metadata_size: top.int("metadata_size").and_then(|n| n.try_into().ok()),
            client,
            request_queue: top.int("reqq").and_then(|n| n.try_into().ok()),
            port: top.int("p").and_then(|n| n.try_into().ok()),
            upload_only: top.int("upload_only").is_some_and(|n| n != 0),
        })
    }
}
