//! What moves bytes.

use std::fmt;
use std::str::FromStr;

use super::course::Course;

/// What moves bytes from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// UDP over plain IP in batches (GSO), with bounded data in flight.
    Udp,
    /// TCP over plain IP, by `iperf3`.
    Tcp,
    /// TLS 1.3 over TCP over plain IP.
    Tls,
    /// BitTorrent over TCP over plain IP: the engine of the others.
    TorrentIp,
    /// SCION/UDP packets, with bounded data in flight.
    Scion,
    /// A QUIC stream over one path.
    Quic,
    /// BitTorrent over this many paths.
    Torrent(u8),
}

impl Carrier {
    /// All carriers, baselines first.
    pub const ALL: [Self; 10] = [
        Self::Udp,
        Self::Tcp,
        Self::Tls,
        Self::TorrentIp,
        Self::Scion,
        Self::Quic,
        Self::Torrent(1),
        Self::Torrent(2),
        Self::Torrent(4),
        Self::Torrent(8),
    ];

    /// Whether the course has the paths that the carrier needs.
    pub fn fits(self, course: &Course) -> bool {
        match self {
            Self::Torrent(paths) => paths <= course.paths(),
            _ => true,
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Udp => "UDP over plain IP, in batches (GSO)",
            Self::Tcp => "TCP over plain IP, by iperf3",
            Self::Tls => "TLS over TCP",
            Self::TorrentIp => "BitTorrent over TCP over plain IP",
            Self::Scion => "SCION/UDP packets",
            Self::Quic => "QUIC over one path",
            Self::Torrent(_) => "BitTorrent over that many paths",
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp => f.write_str("udp"),
            Self::Tcp => f.write_str("tcp"),
            Self::Tls => f.write_str("tls"),
            Self::TorrentIp => f.write_str("torrent-ip"),
            Self::Scion => f.write_str("scion"),
            Self::Quic => f.write_str("quic"),
            Self::Torrent(paths) => write!(f, "torrent-{paths}"),
        }
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|carrier| carrier.to_string() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|carrier| carrier.to_string());
            format!("there is no carrier {text:?}: there are {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.to_string().parse(), Ok(carrier));
        }
        let error = "torrent-3".parse::<Carrier>().unwrap_err();
        assert!(error.contains("torrent-4"), "{error}");
    }
}
