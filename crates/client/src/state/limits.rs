//! The limits of all torrents, in a file of their own.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use hawser_file::PRIVATE;
use serde::{Deserialize, Serialize};

use super::{Damaged, StateError, StateFolder, check_version, failed, set_aside};
use crate::alternative::AlternativeLimits;
use crate::groups::{self, Groups};
use crate::network::NetworkSettings;
use crate::peer_limits::PeerLimits;
use crate::settings::{AllLimits, IncompleteFolder, QueueLimits, RateLimits};

/// The file, in the folder of the torrents.
const FILE: &str = "limits.json";
/// The version of its format.
const VERSION: u32 = 1;
/// Most bytes of the file.
const MAX_BYTES: u64 = 128 * 1024;

/// The limits as they are in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    rates: RateLimits,
    /// Files of earlier versions have none.
    #[serde(default)]
    queue: QueueLimits,
    #[serde(default)]
    alternative: AlternativeLimits,
    #[serde(default)]
    groups: Groups,
    #[serde(default)]
    peers: PeerLimits,
    #[serde(default)]
    network: NetworkSettings,
    #[serde(default)]
    download_dir: Option<PathBuf>,
    #[serde(default)]
    incomplete: IncompleteFolder,
}

impl From<AllLimits> for Kept {
    fn from(limits: AllLimits) -> Self {
        let AllLimits {
            rates,
            queue,
            alternative,
            groups,
            peers,
            network,
            download_dir,
            incomplete,
        } = limits;
        Self {
            version: VERSION,
            rates,
            queue,
            alternative,
            groups,
            peers,
            network,
            download_dir,
            incomplete,
        }
    }
}

impl StateFolder {
    fn limits_path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The limits of all torrents; the default ones if none were saved. A damaged file is set
    /// aside, and returned as such.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn limits(&self) -> Result<(AllLimits, Option<Damaged>), StateError> {
        let path = self.limits_path();
        let mut text = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((AllLimits::default(), None));
            }
            Err(source) => return Err(failed("read", &path, source)),
            Ok(_) => {}
        }
        match parse(&text) {
            Ok(limits) => Ok((limits, None)),
            Err(reason) => {
                let reason =
                    format!("{reason}; the limits of all torrents are the default ones now");
                Ok((AllLimits::default(), Some(set_aside(&path, reason)?)))
            }
        }
    }

    /// Writes the limits of all torrents. They are on disk when this returns.
    ///
    /// # Errors
    /// [`StateError::Io`]; then the file is as it was.
    pub fn save_limits(&self, limits: &AllLimits) -> Result<(), StateError> {
        let path = self.limits_path();
        let kept = Kept::from(limits.clone());
        let text = serde_json::to_vec(&kept).map_err(io::Error::other);
        let written = text.and_then(|text| hawser_file::write(&path, &text, PRIVATE));
        written.map_err(|source| failed("write", &path, source))
    }
}

fn parse(text: &[u8]) -> Result<AllLimits, String> {
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    check_version(text, VERSION)?;
    let kept: Kept = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let limits = AllLimits {
        rates: kept.rates,
        queue: kept.queue,
        alternative: kept.alternative,
        groups: kept.groups,
        peers: kept.peers,
        network: kept.network,
        download_dir: kept.download_dir,
        incomplete: kept.incomplete,
    };
    let faults = [
        limits.queue.fault(),
        limits.alternative.schedule.fault(),
        groups::check(&limits.groups),
        limits.incomplete.fault(),
    ];
    let folder = limits.download_dir.as_ref();
    if folder.is_some_and(|folder| !folder.is_absolute()) {
        return Err("the folder of downloads is not absolute".to_owned());
    }
    match faults.into_iter().flatten().next() {
        Some(fault) => Err(fault),
        None => Ok(limits),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hawser_torrent::{EncryptionPolicy, IpTransports};

    use super::*;
    use crate::groups::{GroupLimits, MAX_GROUP_BYTES, MAX_GROUPS};
    use crate::settings::{Limit, RateLimit};

    fn limits() -> AllLimits {
        AllLimits {
            rates: RateLimits {
                download: RateLimit {
                    rate: 5,
                    holds: true,
                },
                upload: RateLimit {
                    rate: u64::MAX,
                    holds: false,
                },
            },
            queue: QueueLimits {
                seeds: Limit::unset(7),
                ratio: Limit::to(0.25),
                ..QueueLimits::default()
            },
            alternative: AlternativeLimits {
                upload: 6,
                holds: true,
                ..AlternativeLimits::default()
            },
            peers: PeerLimits { all: 7, each: 3 },
            download_dir: Some("/downloads".into()),
            incomplete: IncompleteFolder {
                folder: Some("/incomplete".into()),
                is_on: true,
            },
            network: NetworkSettings {
                encryption: Some(EncryptionPolicy::Require),
                transports: Some(IpTransports::BOTH),
                dht: Some(false),
                local: None,
                exchange: Some(true),
            },
            groups: [("slow".to_owned(), GroupLimits::default())].into(),
        }
    }

    #[test]
    fn limits_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        assert_eq!(state.limits().unwrap(), (AllLimits::default(), None));
        state.save_limits(&limits()).unwrap();
        drop(state);
        let (state, records, damaged) = StateFolder::open(dir.path()).unwrap();
        assert!(records.is_empty() && damaged.is_empty());
        assert_eq!(state.limits().unwrap(), (limits(), None));
    }

    #[test]
    fn as_many_groups_as_there_may_be_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        let mut kept = limits();
        kept.groups = (0..MAX_GROUPS)
            // Each byte becomes two.
            .map(|number| format!("{number:\\<MAX_GROUP_BYTES$}"))
            .map(|name| {
                let mut limits = GroupLimits::default();
                (limits.rates.download.rate, limits.rates.upload.rate) = (u64::MAX, u64::MAX);
                (name, limits)
            })
            .collect();
        state.save_limits(&kept).unwrap();
        assert_eq!(state.limits().unwrap(), (kept, None));
        let text = format!(
            r#"{{"version":1,"rates":{{"download":{{"rate":9,"holds":true}},"upload":{{"rate":8,"holds":false}}}},"groups":{{"{}":{{"rates":{{"download":{{"rate":9,"holds":true}},"upload":{{"rate":8,"holds":false}}}},"is_exempt":false}}}}}}"#,
            "x".repeat(MAX_GROUP_BYTES + 1)
        );
        assert!(parse(text.as_bytes()).is_err());
    }

    #[test]
    fn a_file_of_rates_alone_is_read() {
        let text = br#"{"version":1,"rates":{"download":{"rate":9,"holds":true},"upload":{"rate":8,"holds":false}}}"#;
        let read = parse(text).unwrap();
        assert_eq!(
            (read.rates.download.rate, read.queue, read.alternative),
            (9, QueueLimits::default(), AlternativeLimits::default())
        );
    }

    #[test]
    fn a_damaged_file_is_named_and_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        for text in [
            "",
            "{}",
            r#"{"version":2,"rates":{}}"#,
            &"9".repeat(150_000),
        ] {
            fs::write(state.limits_path(), text).unwrap();
            let (read, damaged) = state.limits().unwrap();
            let damaged = damaged.expect("a damaged file");
            assert_eq!(read, AllLimits::default());
            assert!(damaged.set_aside.exists() && !damaged.path.exists());
            assert!(damaged.reason.contains("default ones"));
        }
    }

    mod fuzz {
        use super::*;

        #[test]
        fn limits() {
            let kept = Kept::from(super::limits());
            let valid = [serde_json::to_vec(&kept).unwrap()];
            hawser_fuzz::fuzz(&valid, |input| drop(parse(input)));
        }
    }
}
