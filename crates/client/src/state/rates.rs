//! The limits of the rates of all torrents, in a file of their own.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use hawser_file::PRIVATE;
use serde::{Deserialize, Serialize};

use super::{Damaged, StateError, StateFolder, check_version, failed, set_aside};
use crate::settings::RateLimits;

/// The file, in the folder of the torrents.
const FILE: &str = "limits.json";
/// The version of its format.
const VERSION: u32 = 1;
/// Most bytes of the file.
const MAX_BYTES: u64 = 4096;

/// The limits as they are in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    rates: RateLimits,
}

impl StateFolder {
    fn rates_path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The limits of the rates of all torrents; there are none if none were saved. A damaged file is set
    /// aside, and returned as such.
    ///
    /// # Errors
    /// [`StateError::Io`].
    pub fn rates(&self) -> Result<(RateLimits, Option<Damaged>), StateError> {
        let path = self.rates_path();
        let mut text = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((RateLimits::default(), None));
            }
            Err(source) => return Err(failed("read", &path, source)),
            Ok(_) => {}
        }
        match parse(&text) {
            Ok(rates) => Ok((rates, None)),
            Err(reason) => {
                let reason = format!("{reason}; the rates of all torrents are not limited now");
                Ok((RateLimits::default(), Some(set_aside(&path, reason)?)))
            }
        }
    }

    /// Writes the limits of the rates of all torrents. They are on disk when this returns.
    ///
    /// # Errors
    /// [`StateError::Io`]; then the file is as it was.
    pub fn save_rates(&self, rates: &RateLimits) -> Result<(), StateError> {
        let path = self.rates_path();
        let kept = Kept {
            version: VERSION,
            rates: *rates,
        };
        let text = serde_json::to_vec(&kept).map_err(io::Error::other);
        let written = text.and_then(|text| hawser_file::write(&path, &text, PRIVATE));
        written.map_err(|source| failed("write", &path, source))
    }
}

fn parse(text: &[u8]) -> Result<RateLimits, String> {
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    check_version(text, VERSION)?;
    let kept: Kept = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    Ok(kept.rates)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::settings::RateLimit;

    const RATES: RateLimits = RateLimits {
        download: RateLimit {
            rate: 5,
            holds: true,
        },
        upload: RateLimit {
            rate: u64::MAX,
            holds: false,
        },
    };

    #[test]
    fn limits_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        assert_eq!(state.rates().unwrap(), (RateLimits::default(), None));
        state.save_rates(&RATES).unwrap();
        drop(state);
        let (state, records, damaged) = StateFolder::open(dir.path()).unwrap();
        assert!(records.is_empty() && damaged.is_empty());
        assert_eq!(state.rates().unwrap(), (RATES, None));
    }

    #[test]
    fn a_damaged_file_is_named_and_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (state, ..) = StateFolder::open(dir.path()).unwrap();
        for text in ["", "{}", r#"{"version":2,"rates":{}}"#, &"9".repeat(5000)] {
            fs::write(state.rates_path(), text).unwrap();
            let (rates, damaged) = state.rates().unwrap();
            let damaged = damaged.expect("a damaged file");
            assert_eq!(rates, RateLimits::default());
            assert!(damaged.set_aside.exists() && !damaged.path.exists());
            assert!(damaged.reason.contains("not limited"));
        }
    }

    mod fuzz {
        use super::*;

        #[test]
        fn limits() {
            let kept = Kept {
                version: VERSION,
                rates: RATES,
            };
            let valid = [serde_json::to_vec(&kept).unwrap()];
            hawser_fuzz::fuzz(&valid, |input| drop(parse(input)));
        }
    }
}
