//! The messages of local discovery (BEP 14): a request of HTTP without an answer, in one datagram.

use std::fmt::Write;

use thiserror::Error;

/// Longest message, in bytes (BEP 14: at most 1,400).
pub(crate) const MAX_MESSAGE: usize = 1400;
/// Most info-hashes of one message that is written; as many are read.
pub(crate) const MAX_HASHES: usize = 20;
/// Longest cookie, in bytes.
const MAX_COOKIE: usize = 64;
/// The first line, without what follows the version.
const METHOD: &str = "BT-SEARCH * HTTP/1.";

/// What a client announces on its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// The TCP port at which it accepts peers.
    pub port: u16,
    /// Its torrents, each once, at most [`MAX_HASHES`].
    pub info_hashes: Vec<[u8; 20]>,
    /// A text that tells its own messages from those of others.
    pub cookie: Option<String>,
}

/// Why a datagram is not an announcement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum AnnouncementError {
    #[error("it has {0} bytes, and at most {MAX_MESSAGE} are allowed")]
    TooLong(usize),
    #[error("it is not text")]
    NoText,
    #[error("it does not begin with BT-SEARCH")]
    Method,
    #[error("it names no port")]
    Port,
    #[error("it names no torrent")]
    InfoHash,
}

impl Announcement {
    /// Reads a datagram. Lines that are unknown or malformed count for nothing.
    ///
    /// # Errors
    /// If it does not name a port and at least one torrent.
    pub fn read(bytes: &[u8]) -> Result<Self, AnnouncementError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(AnnouncementError::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| AnnouncementError::NoText)?;
        let mut lines = text.lines();
        let is_search = |line: &str| line.starts_with(METHOD);
        if !lines.next().is_some_and(is_search) {
            return Err(AnnouncementError::Method);
        }
        let (mut port, mut cookie, mut info_hashes) = (None, None, Vec::new());
        // An empty line ends the headers.
        for line in lines.take_while(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            if name.eq_ignore_ascii_case("port") {
                port = value.parse().ok().filter(|port| *port != 0);
            } else if name.eq_ignore_ascii_case("infohash") {
                let hash = read_hash(value).filter(|hash| !info_hashes.contains(hash));
                info_hashes.extend(hash.filter(|_| info_hashes.len() < MAX_HASHES));
            } else if name.eq_ignore_ascii_case("cookie") {
                cookie = (value.len() <= MAX_COOKIE).then(|| value.to_owned());
            }
        }
        if info_hashes.is_empty() {
            return Err(AnnouncementError::InfoHash);
        }
        Ok(Self {
            port: port.ok_or(AnnouncementError::Port)?,
            info_hashes,
            cookie: cookie.filter(|cookie| !cookie.is_empty()),
        })
    }

    /// As a datagram to the group `host`, an address with a port.
    pub fn write(&self, host: &str) -> String {
        let mut out = format!("{METHOD}1\r\nHost: {host}\r\nPort: {}\r\n", self.port);
        for hash in self.info_hashes.iter().take(MAX_HASHES) {
            out.push_str("Infohash: ");
            for byte in hash {
                // Writing to a text does not fail.
                let _ = write!(out, "{byte:02x}");
            }
            out.push_str("\r\n");
        }
        if let Some(cookie) = &self.cookie {
            let _ = write!(out, "cookie: {cookie}\r\n");
        }
        out.push_str("\r\n\r\n");
        out
    }
}

/// Reads 40 hexadecimal digits.
fn read_hash(text: &str) -> Option<[u8; 20]> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = <[u8; 40]>::try_from(digits?).ok()?;
    Some(std::array::from_fn(|at| {
        digits[2 * at] << 4 | digits[2 * at + 1]
    }))
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;
    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "[ff15::efc0:988f]:6771";

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            port in 1u16.., hashes in prop::collection::hash_set(any::<[u8; 20]>(), 1..=MAX_HASHES),
            cookie in prop::option::of("[a-z0-9]{1,64}"),
        ) {
            let info_hashes = hashes.into_iter().collect();
            let announcement = Announcement { port, info_hashes, cookie };
            let written = announcement.write(HOST);
            prop_assert!(written.len() <= MAX_MESSAGE);
            prop_assert_eq!(Announcement::read(written.as_bytes()), Ok(announcement));
        }
    }

    fn valid() -> Announcement {
        Announcement {
            port: 6881,
            info_hashes: vec![[0xab; 20], [0xcd; 20]],
            cookie: Some("name".to_owned()),
        }
    }

    #[test]
    fn any_datagram_is_read_or_refused() {
        fuzz(&[valid().write(HOST).into_bytes()], |input| {
            if let Ok(read) = Announcement::read(input) {
                let written = read.write(HOST);
                assert_eq!(Announcement::read(written.as_bytes()), Ok(read));
            }
        });
    }

    #[test]
    fn messages_of_other_programs_are_read() {
        let hash = "AB".repeat(20);
        let text = format!(
            "BT-SEARCH * HTTP/1.1\r\nhost: 239.192.152.143:6771\r\nport: 6881\r\ninfohash: {hash}\r\n\
             Infohash: {}\r\nInfohash: 12\r\ncookie: name\r\nX: y\r\n\r\n\r\n",
            "cd".repeat(20)
        );
        assert_eq!(Announcement::read(text.as_bytes()), Ok(valid()));
        let bare = text.replace("\r\n", "\n");
        assert_eq!(Announcement::read(bare.as_bytes()), Ok(valid()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = valid().write(HOST);
        let read = |text: &str| Announcement::read(text.as_bytes());
        assert_eq!(read(""), Err(AnnouncementError::Method));
        assert_eq!(
            read(&text.replace("BT-SEARCH", "M-SEARCH")),
            Err(AnnouncementError::Method)
        );
        for port in ["0", "65536", "-1", ""] {
            let text = text.replace("6881", port);
            assert_eq!(read(&text), Err(AnnouncementError::Port), "{port}");
        }
        assert_eq!(
            read(&text.replace("Infohash", "Hash")),
            Err(AnnouncementError::InfoHash)
        );
        assert_eq!(Announcement::read(&[0xff]), Err(AnnouncementError::NoText));
        let long = text + &" ".repeat(MAX_MESSAGE);
        assert_eq!(read(&long), Err(AnnouncementError::TooLong(long.len())));
    }
}
