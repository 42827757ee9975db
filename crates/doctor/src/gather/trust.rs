//! Certificates and TRCs, in the folders of scionproto's layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hawser_trust::{Chain, Trc};

use crate::facts::{Trust, TrustItem};

/// The newest TRC of each ISD in `certs`, the certificate of the AS in `crypto/as` that is valid
/// longest, and the files there that are neither.
pub(super) fn gather(config: &Path) -> Vec<Trust> {
    let mut found = Vec::new();
    let mut newest: BTreeMap<u16, (Trc, PathBuf)> = BTreeMap::new();
    for path in files(&config.join("certs"), "trc") {
        match read(&path, |bytes| Trc::parse(bytes).map_err(|e| e.to_string())) {
            Ok(trc) => {
                let isd = trc.id().isd;
                if newest
                    .get(&isd)
                    .is_none_or(|(known, _)| known.id() < trc.id())
                {
                    newest.insert(isd, (trc, path));
                }
            }
            Err(reason) => found.push(unusable(path, reason)),
        }
    }
    found.extend(newest.into_values().map(|(trc, path)| Trust {
        path,
        item: Ok(TrustItem {
            name: format!("the TRC {}", trc.id()),
            is_trc: true,
            not_before: trc.validity().not_before,
            not_after: trc.validity().not_after,
        }),
    }));
    let mut longest: Option<(Chain, PathBuf)> = None;
    // Users other than the AS's may not look into this folder: they have no use for it.
    for path in files(&config.join("crypto/as"), "pem") {
        match read(&path, |bytes| {
            Chain::from_pem(bytes).map_err(|e| e.to_string())
        }) {
            Ok(chain) => {
                let until = chain.validity().not_after;
                let longer = |(known, _): &(Chain, _)| known.validity().not_after < until;
                if longest.as_ref().is_none_or(longer) {
                    longest = Some((chain, path));
                }
            }
            Err(reason) => found.push(unusable(path, reason)),
        }
    }
    found.extend(longest.map(|(chain, path)| Trust {
        path,
        item: Ok(TrustItem {
            name: format!("the certificate of {}", chain.isd_as()),
            is_trc: false,
            not_before: chain.validity().not_before,
            not_after: chain.validity().not_after,
        }),
    }));
    found
}

fn unusable(path: PathBuf, reason: String) -> Trust {
    Trust {
        path,
        item: Err(reason),
    }
}

/// The files in a folder whose names end in `extension`, sorted; none if it cannot be read.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn read<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T, String>) -> Result<T, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    parse(&bytes)
}
