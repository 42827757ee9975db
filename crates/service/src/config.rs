//! The configuration: a TOML file.

mod check;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_bootstrap::Server;
use hawser_bulk::{Algorithm, PathOptions};
use hawser_http::{Tls, TlsError, TlsFiles, TokenHash, plain_words};
use hawser_keys::{Allowed, KeysFileError, PeerKey};
use serde::Deserialize;
use thiserror::Error;

use crate::owner::OWNER;
use crate::queue::{Limits, UserLimits};
use crate::text;

/// Keys that stood above all sections, in the configuration of `hawser serve`, and where they are now.
const MOVED: [(&str, &str); 4] = [
    ("attempts", "transfers.attempts"),
    ("keep_days", "transfers.keep_days"),
    ("retry", "transfers.retry"),
    ("running", "transfers.running"),
];

/// The configuration of a daemon. Relative paths are relative to the folder of its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file, and its text; `None` if it does not exist.
    #[serde(skip)]
    pub(crate) path: PathBuf,
    #[serde(skip)]
    pub(crate) text: Option<String>,
    /// The folder of the state; `None` for that of the host or the user.
    pub state: Option<PathBuf>,
    /// The file with this host's private key, which is made if it does not exist; `None` for that of
    /// the user.
    pub key: Option<PathBuf>,
    /// Defaults of the flags about torrents, which the program reads.
    #[serde(default)]
    pub torrents: toml::Table,
    /// How this host gets into its network.
    #[serde(default)]
    pub network: NetworkConfig,
    /// How transfers are done.
    #[serde(default)]
    pub transfers: TransfersConfig,
    /// The HTTP API without TLS.
    #[serde(default)]
    pub http: HttpConfig,
    /// The HTTP API over TLS, with certificates of clients.
    pub https: Option<HttpsConfig>,
    /// What others may send here; `None` for nothing.
    pub receive: Option<ReceiveConfig>,
    /// The users, by name.
    #[serde(default)]
    pub users: BTreeMap<String, UserConfig>,
}

/// How this host gets into its network.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// The SCION daemon, `HOST:PORT` or `default`.
    pub sciond: Option<String>,
    /// A folder with topology.json, to do without a daemon.
    pub config_dir: Option<PathBuf>,
    /// The AS's bootstrap server, `http://HOST`, to do without both: what it has is fetched at each
    /// start, and kept in `bootstrap` in the folder with the jobs.
    #[serde(default, deserialize_with = "text::optional")]
    pub bootstrap: Option<Server>,
    /// This host's IP address in its AS.
    pub local: Option<IpAddr>,
}

/// How transfers are done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransfersConfig {
    /// Most transfers that run at once.
    #[serde(default = "running")]
    pub running: usize,
    /// How long a transfer is tried again while nothing is delivered, before it fails.
    #[serde(default = "retry", deserialize_with = "text::retry")]
    pub retry: Duration,
    /// Attempts in a row that may fail without delivering anything, before a transfer fails; `None`
    /// for as many as there is time for.
    pub attempts: Option<u32>,
    /// How long transfers are listed after their end, in days.
    #[serde(default = "keep_days")]
    pub keep_days: u32,
    /// Most paths that a transfer uses at once.
    #[serde(default = "paths")]
    pub paths: usize,
    /// Rate control of every path.
    #[serde(default, deserialize_with = "text::deserialize")]
    pub congestion: Algorithm,
    /// Most content that all transfers send together, in bit/s; `None` for no limit.
    #[serde(default, deserialize_with = "text::rate")]
    pub rate: Option<u64>,
    /// Keys of servers that are trusted, at any address. If there are any, `known_hosts` does not
    /// count.
    #[serde(default, deserialize_with = "text::list")]
    pub server_keys: Vec<PeerKey>,
    /// The file with the keys of servers; `None` for that of the user.
    pub known_hosts: Option<PathBuf>,
    /// The port for content, which all transfers share then; `None` for a free one each.
    pub data_port: Option<NonZeroU16>,
}

/// The HTTP API without TLS.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// An address of this host's loopback interface; `None` for the usual one.
    pub listen: Option<SocketAddr>,
    /// The user that requests without a token act for; `None` to refuse them.
    pub anonymous: Option<String>,
}

/// The HTTP API over TLS.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpsConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The file with the chain of certificates, in PEM.
    pub certificate: PathBuf,
    /// The file with its private key, in PEM.
    pub key: PathBuf,
    /// The file with the certificates of the authorities that issue certificates of users; `None` if
    /// users have tokens alone.
    pub client_ca: Option<PathBuf>,
}

impl HttpsConfig {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] if they cannot be used.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        Tls::read(&TlsFiles {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_ca: self.client_ca.clone(),
        })
    }
}

/// What others may send here.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveConfig {
    /// The folder to write to.
    pub folder: PathBuf,
    /// The address for connections; `None` for any port that routers deliver to.
    pub listen: Option<SocketAddr>,
    /// The port for content; `None` for a free one.
    pub data_port: Option<NonZeroU16>,
    /// Keys that may send.
    #[serde(default, deserialize_with = "text::list")]
    pub allow: Vec<PeerKey>,
    /// The file with further keys that may send.
    pub allowed_keys: Option<PathBuf>,
    /// The folder that these may read; `None` for none.
    pub share: Option<PathBuf>,
    /// Most sessions at once.
    #[serde(default = "sessions")]
    pub sessions: usize,
    /// Most content that others send together, and most that they fetch, in bit/s; `None` for no
    /// limit.
    #[serde(default, deserialize_with = "text::rate")]
    pub rate: Option<u64>,
}

impl ReceiveConfig {
    /// The keys that may send.
    pub(crate) fn allowed(&self) -> Result<Allowed, KeysFileError> {
        let allowed = Allowed::new(self.allow.iter().copied());
        match &self.allowed_keys {
            Some(path) => allowed.with_file(path),
            None => Ok(allowed),
        }
    }
}

/// A user.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The SHA-256 of the user's token, in hex.
    #[serde(default, deserialize_with = "text::optional")]
    pub token_sha256: Option<TokenHash>,
    /// The subject of the user's certificate (RFC 4514), as `CN=alice,O=site`.
    pub certificate: Option<String>,
    /// The folders that the user may send from.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// Most of the user's transfers that run at once.
    #[serde(default = "user_running")]
    pub running: usize,
    /// Most of the user's transfers that wait.
    #[serde(default = "user_queued")]
    pub queued: usize,
    /// Most content that the user's transfers send together, in bit/s; `None` for no limit.
    #[serde(default, deserialize_with = "text::rate")]
    pub rate: Option<u64>,
    /// The highest priority that the user may give.
    #[serde(default)]
    pub max_priority: i8,
    /// Whether the user sees and cancels the transfers of all.
    #[serde(default)]
    pub admin: bool,
    /// Whether the user commands the torrents, and with them every file that the daemon may write.
    #[serde(default)]
    pub torrents: bool,
}

const fn running() -> usize {
    4
}

const fn retry() -> Duration {
    Duration::from_secs(3600)
}

const fn keep_days() -> u32 {
    7
}

const fn sessions() -> usize {
    16
}

const fn user_running() -> usize {
    2
}

const fn user_queued() -> usize {
    1000
}

fn paths() -> usize {
    PathOptions::default().subflows
}

impl Default for TransfersConfig {
    fn default() -> Self {
        Self {
            running: running(),
            retry: retry(),
            attempts: None,
            keep_days: keep_days(),
            paths: paths(),
            congestion: Algorithm::default(),
            rate: None,
            server_keys: Vec::new(),
            known_hosts: None,
            data_port: None,
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not TOML, or has unknown or wrong keys.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value does not fit the others.
    #[error("{path}: {key}: {reason}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl Config {
    /// Reads the file at `path`, and checks it.
    ///
    /// # Errors
    /// [`ConfigError`], which names the file, the key, and what to write instead.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    /// As [`read`](Self::read); if there is no such file, the configuration that an empty one has.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_if_any(path: &Path) -> Result<Self, ConfigError> {
        match Self::read(path) {
            Err(ConfigError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let empty = Self::parse(path, "")?;
                Ok(Self {
                    text: None,
                    ..empty
                })
            }
            read => read,
        }
    }

    /// As [`read`](Self::read), of a text that would be at `path`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start).min(text.len());
            let before = text.as_bytes().get(..at).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let content = text.lines().nth(line - 1).unwrap_or_default().trim();
            let message = match moved(text) {
                Some((old, new)) => format!("`{old}` is now `{new}`"),
                None => {
                    let message = error.message().lines().map(plain_words);
                    message.collect::<Vec<_>>().join("; ")
                }
            };
            ConfigError::Line {
                path: path.to_owned(),
                line,
                reason: match content.is_empty() {
                    true => message,
                    false => format!("`{content}`: {message}"),
                },
            }
        })?;
        // From the root, so that users can name their files from there.
        let absolute = std::path::absolute(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        config.resolve(absolute.parent().unwrap_or(Path::new("/")));
        (config.path, config.text) = (absolute, Some(text.to_owned()));
        check::check(&config).map_err(|(key, reason)| ConfigError::Value {
            path: path.to_owned(),
            key,
            reason,
        })?;
        Ok(config)
    }

    /// The limits of the queue.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let users = self.users.iter().map(|(name, user)| {
            let limits = UserLimits {
                running: user.running,
                queued: user.queued,
                priority: user.max_priority,
            };
            (name.clone(), limits)
        });
        let owner = UserLimits {
            running: self.transfers.running,
            queued: user_queued(),
            priority: i8::MAX,
        };
        Limits {
            running: self.transfers.running,
            attempts: self.transfers.attempts,
            retry: self.transfers.retry.as_secs(),
            users: users.chain([(OWNER.to_owned(), owner)]).collect(),
        }
    }

    /// Makes relative paths relative to `folder`.
    fn resolve(&mut self, folder: &Path) {
        let mut paths: Vec<&mut PathBuf> = Vec::new();
        paths.extend(&mut self.state);
        paths.extend(&mut self.key);
        paths.extend(&mut self.network.config_dir);
        paths.extend(&mut self.transfers.known_hosts);
        if let Some(https) = &mut self.https {
            paths.extend([&mut https.certificate, &mut https.key]);
            paths.extend(&mut https.client_ca);
        }
        if let Some(receive) = &mut self.receive {
            paths.push(&mut receive.folder);
            paths.extend(&mut receive.allowed_keys);
            paths.extend(&mut receive.share);
        }
        for user in self.users.values_mut() {
            paths.extend(&mut user.folders);
        }
        for path in paths {
            *path = folder.join(&path);
        }
    }
}

/// The key above all sections that stands elsewhere now, if one of them is in this text.
fn moved(text: &str) -> Option<(&'static str, &'static str)> {
    let table: toml::Table = text.parse().ok()?;
    MOVED.into_iter().find(|(old, _)| table.contains_key(*old))
}

#[cfg(test)]
mod tests;
