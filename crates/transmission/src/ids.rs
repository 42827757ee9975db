//! How calls name torrents.

/// The number of a torrent: positive, given once, not stable across starts of the daemon.
pub type TorrentId = i64;

/// The torrents that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// All.
    All,
    /// Those of which a fact has changed within the last [`RECENT`](crate::RECENT).
    RecentlyActive,
    /// These. What is not there is passed over.
    List(Vec<TorrentRef>),
}

/// One torrent, as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorrentRef {
    /// By its number.
    Id(TorrentId),
    /// By its info-hash (BEP 3).
    Hash([u8; 20]),
    /// By a text that is no info-hash: there is no such torrent.
    Unknown,
}

impl TorrentRef {
    /// Reads 40 hex digits, of either case.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut hash = [0; 20];
        if text.len() != 40 || !text.is_ascii() {
            return Self::Unknown;
        }
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            match (digit(digits[0]), digit(digits[1])) {
                (Some(high), Some(low)) => *byte = (high * 16 + low) as u8,
                _ => return Self::Unknown,
            }
        }
        Self::Hash(hash)
    }
}

/// An info-hash as 40 hex digits in lower case.
pub(crate) fn hex(hash: &[u8; 20]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    hash.iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
