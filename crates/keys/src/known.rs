//! The keys of servers that a client knows.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use hawser_address::{IsdAsn, ScionAddr};
use thiserror::Error;

use crate::file::{self, KeysFileError};
use crate::peer_key::PeerKey;

/// The keys of servers: those given for this use, else those of a file in the manner of OpenSSH's
/// `known_hosts`. A server that is in neither is not trusted.
///
/// A line of the file is `ADDRESS KEY`, then a comment. The address is `ISD-AS,IP` or, for one port
/// only, `ISD-AS,IP:PORT`. A server with several lines may show any of their keys.
///
/// Cloning shares the keys that are given.
#[derive(Debug, Clone)]
pub struct Known {
    keys: Arc<RwLock<Vec<PeerKey>>>,
    file: PathBuf,
}

/// Why a server is not trusted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerKeyError {
    /// Nothing says which key it has.
    #[error(
        "the key of {server} is {key}, which is not known here: if that is the key its owner names, give `--server-key {key}`, or add the line `{host} {key}` to {file}",
        host = Host::of(*server), file = file.display()
    )]
    Unknown {
        /// The server.
        server: ScionAddr,
        /// The key that it shows.
        key: PeerKey,
        /// The file that has no line for it.
        file: PathBuf,
    },
    /// It shows another key than the file has for it.
    #[error(
        "{server} shows the key {key}, and {file}:{line} names another (possible man-in-the-middle); if its owner has changed the key, change the line",
        file = file.display()
    )]
    Changed {
        /// The server.
        server: ScionAddr,
        /// The key that it shows.
        key: PeerKey,
        /// The file.
        file: PathBuf,
        /// The first line with another key, from 1.
        line: usize,
    },
    /// It shows another key than the given ones.
    #[error("{server} shows the key {key}, not the given one (possible man-in-the-middle)")]
    NotGiven {
        /// The server.
        server: ScionAddr,
        /// The key that it shows.
        key: PeerKey,
    },
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] KeysFileError),
}

impl ServerKeyError {
    /// The key that the server shows; `None` if the file cannot be used.
    pub fn key(&self) -> Option<PeerKey> {
        match self {
            Self::Unknown { key, .. } | Self::Changed { key, .. } | Self::NotGiven { key, .. } => {
                Some(*key)
            }
            Self::File(_) => None,
        }
    }
}

/// An entry of the file, with the number of its line.
type Line = (usize, (Host, PeerKey));

impl Known {
    /// The name of the user's file in [`folder`](crate::folder()).
    pub const FILE: &str = "known_hosts";

    /// Knows what is in `file`, which need not exist.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            keys: Arc::default(),
            file: file.into(),
        }
    }

    /// Trusts `keys` at any address. If there are any, the file is not used.
    pub fn with_keys(self, keys: impl IntoIterator<Item = PeerKey>) -> Self {
        self.keys_mut().extend(keys);
        self
    }

    /// Trusts `keys` from now on in place of those that were given, here and in all clones.
    pub fn set_keys(&self, keys: impl IntoIterator<Item = PeerKey>) {
        *self.keys_mut() = keys.into_iter().collect();
    }

    fn keys_mut(&self) -> RwLockWriteGuard<'_, Vec<PeerKey>> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `key` is one of those that were given; `None` if there are none.
    fn is_given(&self, key: PeerKey) -> Option<bool> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        (!keys.is_empty()).then(|| keys.contains(&key))
    }

    /// Whether `key`, which was one of `server`'s, still is. A wrong line in the file does not keep
    /// the other lines from being counted; a file that cannot be read, or that others can write,
    /// trusts no server. Blocks while the file is read.
    ///
    /// A server whose key is no longer known is to lose its sessions: see
    /// [`Revocations`](crate::Revocations).
    pub fn still_knows(&self, server: ScionAddr, key: PeerKey) -> bool {
        if let Some(given) = self.is_given(key) {
            return given;
        }
        let entries = file::right_entries(&self.file, parse).unwrap_or_default();
        let mut entries = entries.into_iter();
        entries.any(|(host, known)| host.is(server) && known == key)
    }

    /// Whether the file has a key of a host, at any port.
    ///
    /// # Errors
    /// [`KeysFileError`] when the file exists and cannot be used.
    pub fn knows_host(&self, isd_as: IsdAsn, ip: IpAddr) -> Result<bool, KeysFileError> {
        let entries = self.entries()?;
        let is = |host: &Host| host.isd_as == isd_as && host.ip == ip;
        Ok(entries.iter().any(|(_, (host, _))| is(host)))
    }

    /// Checks that the file can be used, or does not exist.
    ///
    /// # Errors
    /// [`KeysFileError`] when it exists and cannot be used.
    pub fn check_file(&self) -> Result<(), KeysFileError> {
        self.entries().map(drop)
    }

    /// The hosts and keys in the file, with their lines; none if it does not exist.
    fn entries(&self) -> Result<Vec<Line>, KeysFileError> {
        match file::entries(&self.file, parse) {
            Err(error) if error.is_missing() => Ok(Vec::new()),
            entries => entries,
        }
    }

    /// Checks that `key` is one of `server`'s.
    ///
    /// # Errors
    /// [`ServerKeyError`] when it is not, or when that cannot be found out.
    pub fn check(&self, server: ScionAddr, key: PeerKey) -> Result<(), ServerKeyError> {
        if let Some(given) = self.is_given(key) {
            return given
                .then_some(())
                .ok_or(ServerKeyError::NotGiven { server, key });
        }
        let mut other = None;
        for (line, (host, known)) in self.entries()? {
            if host.is(server) {
                if known == key {
                    return Ok(());
                }
                other = other.or(Some(line));
            }
        }
        let file = self.file.clone();
        Err(match other {
            Some(line) => ServerKeyError::Changed {
                server,
                key,
                file,
                line,
            },
            None => ServerKeyError::Unknown { server, key, file },
        })
    }
}

/// Where a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host {
    isd_as: IsdAsn,
    ip: IpAddr,
    /// `None` for all.
    port: Option<u16>,
}

impl Host {
    /// The host of `server`, with all its ports.
    fn of(server: ScionAddr) -> Self {
        Self {
            isd_as: server.isd_as,
            ip: server.host.ip(),
            port: None,
        }
    }

    fn is(&self, server: ScionAddr) -> bool {
        let port = server.host.port();
        Self::of(server)
            == Self {
                port: None,
                ..*self
            }
            && self.port.is_none_or(|own| own == port)
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(addr) = text.parse::<ScionAddr>() {
            let port = Some(addr.host.port());
            return Some(Self {
                port,
                ..Self::of(addr)
            });
        }
        let (isd_as, ip) = text.split_once(',')?;
        let bare = ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
        let isd_as = isd_as.parse().ok();
        Some(Self {
            isd_as: isd_as.filter(|isd_as: &IsdAsn| !isd_as.is_wildcard())?,
            ip: bare.unwrap_or(ip).parse().ok()?,
            port: None,
        })
    }
}

/// Prints a host with all its ports.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.isd_as, self.ip)
    }
}

/// Reads the address and the key at the beginning of a line.
pub(crate) fn parse(line: &str) -> Result<(Host, PeerKey), String> {
    let mut words = line.split_whitespace();
    let (host, key) = (words.next(), words.next());
    let host = host.unwrap_or_default();
    let parsed = Host::parse(host).ok_or_else(|| {
        format!("`{host}` is not an address: write ISD-AS,IP or ISD-AS,IP:PORT, then the key")
    })?;
    let key = key.ok_or("there is no key after the address")?;
    Ok((parsed, key.parse().map_err(|error| format!("{error}"))?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    const A: PeerKey = PeerKey([1; 32]);
    const B: PeerKey = PeerKey([2; 32]);
    const C: PeerKey = PeerKey([3; 32]);

    fn addr(text: &str) -> ScionAddr {
        text.parse().unwrap()
    }

    /// A file of `text`, in the folder that is returned too.
    fn known(text: &str) -> (tempfile::TempDir, Known) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        (folder, Known::new(file))
    }

    #[test]
    fn servers_are_known_by_host_or_by_port() {
        let (_folder, known) = known(&format!(
            "# site B\n1-ff00:0:110,10.0.0.1 {A} first\n1-ff00:0:110,10.0.0.1 {B}\n\n\
             1-ff00:0:110,[10.0.0.2]:31000 {A}\n1-ff00:0:111,fd00::1\t{B}\n2-ff00:0:211,[fd00::1] {C}\n"
        ));
        for (server, keys) in [
            ("1-ff00:0:110,10.0.0.1:31000", &[A, B][..]),
            ("1-ff00:0:110,10.0.0.1:5", &[A, B]),
            ("1-ff00:0:110,10.0.0.2:31000", &[A]),
            ("1-ff00:0:110,10.0.0.2:31001", &[]),
            ("1-ff00:0:111,[fd00::1]:9", &[B]),
            ("2-ff00:0:211,[fd00::1]:9", &[C]),
            ("1-ff00:0:111,10.0.0.1:31000", &[]),
        ] {
            for key in [A, B, C] {
                let checked = known.check(addr(server), key);
                assert_eq!(checked.is_ok(), keys.contains(&key), "{server} {key}");
            }
        }
    }

    #[test]
    fn an_unknown_server_is_refused_with_both_remedies() {
        let folder = tempfile::tempdir().unwrap();
        let known = Known::new(folder.path().join("known_hosts"));
        for (server, host) in [
            ("1-ff00:0:110,10.0.0.1:31000", "1-ff00:0:110,10.0.0.1"),
            ("1-ff00:0:110,[fd00::1]:31000", "1-ff00:0:110,fd00::1"),
        ] {
            let error = known.check(addr(server), A).unwrap_err();
            assert!(matches!(error, ServerKeyError::Unknown { .. }));
            let error = error.to_string();
            assert!(error.contains(&format!("`--server-key {A}`")), "{error}");
            let line = format!("{host} {A}");
            assert!(error.contains(&format!("the line `{line}` to {}", known.file.display())));
            // It is a remedy.
            fs::write(&known.file, &line).unwrap();
            fs::set_permissions(&known.file, PermissionsExt::from_mode(0o600)).unwrap();
            assert!(known.check(addr(server), A).is_ok());
            fs::remove_file(&known.file).unwrap();
        }
    }

    #[test]
    fn a_server_with_another_key_than_before_is_refused() {
        let (_folder, known) = known(&format!(
            "1-ff00:0:111,10.0.0.1 {B}\n1-ff00:0:110,10.0.0.1:31000 {A}\n1-ff00:0:110,10.0.0.1 {B}\n"
        ));
        let error = known
            .check(addr("1-ff00:0:110,10.0.0.1:31000"), C)
            .unwrap_err();
        assert!(
            matches!(error, ServerKeyError::Changed { line: 2, .. }),
            "{error}"
        );
        let named = format!("{}:2 names another", known.file.display());
        assert!(error.to_string().contains(&named), "{error}");
    }

    #[test]
    fn a_server_whose_line_was_removed_is_no_longer_known() {
        let server = addr("1-ff00:0:110,10.0.0.1:31000");
        let (folder, known) = known(&format!("1-ff00:0:110,10.0.0.1 {A}\n"));
        assert!(known.still_knows(server, A) && !known.still_knows(server, B));
        let file = folder.path().join("known_hosts");
        fs::write(&file, format!("wrong\n1-ff00:0:110,10.0.0.1 {B}\n")).unwrap();
        assert!(known.still_knows(server, B) && !known.still_knows(server, A));
        fs::remove_file(&file).unwrap();
        assert!(!known.still_knows(server, B));
        let known = known.with_keys([A]);
        let shared = known.clone();
        assert!(shared.still_knows(server, A));
        known.set_keys([B]);
        assert!(!shared.still_knows(server, A) && shared.still_knows(server, B));
    }

    #[test]
    fn given_keys_stand_in_place_of_the_file() {
        let (_folder, known) = known(&format!("1-ff00:0:110,10.0.0.1 {A}\n"));
        let server = addr("1-ff00:0:110,10.0.0.1:31000");
        let given = known.with_keys([B, C]);
        assert!(given.check(server, B).is_ok() && given.check(server, C).is_ok());
        let error = given.check(server, A).unwrap_err();
        assert!(matches!(error, ServerKeyError::NotGiven { .. }), "{error}");
    }

    #[test]
    fn a_host_is_known_at_any_port() {
        let (_folder, known) = known(&format!("1-ff00:0:110,10.0.0.1:31000 {A}\n"));
        let knows = |isd_as: &str, ip: &str| {
            let (isd_as, ip) = (isd_as.parse().unwrap(), ip.parse().unwrap());
            known.knows_host(isd_as, ip).unwrap()
        };
        assert!(knows("1-ff00:0:110", "10.0.0.1"));
        assert!(!knows("1-ff00:0:110", "10.0.0.2") && !knows("1-ff00:0:111", "10.0.0.1"));
        assert!(known.check_file().is_ok());
        let (folder, broken) = self::known("wrong\n");
        assert!(broken.check_file().is_err());
        fs::remove_file(folder.path().join("known_hosts")).unwrap();
        assert!(broken.check_file().is_ok());
    }

    #[test]
    fn errors_name_the_line() {
        for (line, reason) in [
            ("10.0.0.1 SHA256:", "`10.0.0.1` is not an address"),
            (
                "1-ff00:0:110,example SHA256:",
                "`1-ff00:0:110,example` is not an address",
            ),
            ("1-0,10.0.0.1 SHA256:", "`1-0,10.0.0.1` is not an address"),
            ("1-ff00:0:110,10.0.0.1", "there is no key after the address"),
            ("1-ff00:0:110,10.0.0.1 SHA256:", "`SHA256:` is not a key"),
        ] {
            let (_folder, known) = known(&format!("\n{line}\n"));
            let error = known.check(addr("1-ff00:0:110,10.0.0.1:1"), A).unwrap_err();
            let error = error.to_string();
            let start = format!("{}:2: ", known.file.display());
            assert!(
                error.starts_with(&start) && error.contains(reason),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in "([0-9a-f:-]{1,12},)?\\PC*( \\PC*)?") {
            let _ = parse(&line);
        }

        #[test]
        fn printed_hosts_are_read_back(isd in 1u64..=0xffff, asn in 1u64..1 << 48, ip: IpAddr) {
            let host = Host { isd_as: IsdAsn(isd << 48 | asn), ip, port: None };
            prop_assert_eq!(Host::parse(&host.to_string()), Some(host));
        }
    }
}
