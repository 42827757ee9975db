//! The segments of an exported network, in files that each fit into a ConfigMap.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hawser_control::{MAX_LIFETIME, Publication, announced};
use sha2::{Digest, Sha256};

use crate::error::ExportError;
use crate::index::MadeSegments;
use crate::keys::Keys;
use crate::name::hex;
use crate::plan::Plan;

/// Largest file in bytes. A ConfigMap takes 1 MiB, and with base64 around it a request must stay below
/// the 1.5 MiB of etcd.
pub(crate) const MAX_PART: usize = 512 << 10;
/// Most bytes of all files: a pod mounts all of them, and an AS reads and keeps them. The segments of 500
/// ASes take about 26 MiB.
const MAX_SIZE: usize = 64 << 20;
/// Most files that an index may name.
const MAX_PARTS: usize = 1024;

/// The segments: what is remembered of them, and the content of each file.
pub(crate) struct Segments {
    pub made: MadeSegments,
    pub parts: Vec<Vec<u8>>,
}

/// The folder of the parts.
pub(crate) const FOLDER: &str = "segments";

/// The name of the file with a part, in the folder of an export.
pub(crate) fn part_path(at: usize) -> String {
    format!("{FOLDER}/{at:03}.json.gz")
}

/// In how many ConfigMaps `parts` files are put, after `before` of them: in as many, if these are enough. As each
/// pod names all of them, another number starts all pods again; so there are some to spare.
pub(crate) fn config_maps(before: usize, parts: usize) -> usize {
    match parts <= before {
        true => before,
        false => parts + parts / 4 + 1,
    }
}

/// The segments of a network at `now` (Unix seconds), whose keys are below `pki`: those of `before` below
/// `folder`, until half of their lifetime is over, else new ones.
pub(crate) fn segments(
    folder: &Path,
    (pki, keys): (&Path, &Keys),
    plan: &Plan,
    before: Option<&MadeSegments>,
    now: u64,
) -> Result<Segments, ExportError> {
    let of = hash(plan, keys);
    if let Some(before) = before.filter(|before| before.of == of && !is_due(before, now))
        && let Some(parts) = read(folder, before)
    {
        let made = before.clone();
        return Ok(Segments { made, parts });
    }
    let services = |isd_as| {
        let found = plan.ases.iter().find(|as_| as_.isd_as == isd_as);
        found.map_or_else(Default::default, |as_| announced(&as_.topology))
    };
    let network = plan.network.clone();
    let publication = Publication::make(network, pki, services, lifetime(), now)?;
    let parts = publication.to_parts(MAX_PART);
    let size: usize = parts.iter().map(Vec::len).sum();
    if size > MAX_SIZE {
        return Err(ExportError::TooManySegments {
            segments: publication.len(),
            size: size.div_ceil(1 << 20),
            most: MAX_SIZE >> 20,
        });
    }
    let made = MadeSegments {
        of,
        made: now,
        expiry: publication.expiry(),
        count: publication.len(),
        parts: parts.len(),
    };
    Ok(Segments { made, parts })
}

/// As long as SCION allows.
fn lifetime() -> Duration {
    MAX_LIFETIME
}

/// Whether half of the lifetime is over at `now`.
fn is_due(made: &MadeSegments, now: u64) -> bool {
    now < made.made || now >= made.made + made.expiry.saturating_sub(made.made) / 2
}

/// The parts that an export wrote; `None` if a file is missing.
fn read(folder: &Path, made: &MadeSegments) -> Option<Vec<Vec<u8>>> {
    let read = |at| fs::read(folder.join(part_path(at))).ok();
    (0..made.parts.min(MAX_PARTS)).map(read).collect()
}

/// Hash of what the segments are made from.
fn hash(plan: &Plan, keys: &Keys) -> String {
    let mut hash = Sha256::new();
    // Plain data with text keys can always be written as JSON.
    hash.update(serde_json::to_vec(&plan.network).unwrap_or_default());
    for as_ in &plan.ases {
        let services = announced(&as_.topology);
        hash.update(format!("{services:?}"));
    }
    hash.update(keys.hash());
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However many files each export has: they have room, and pods start again only when they had not.
        #[test]
        fn pods_stay_while_the_files_have_room(exports in prop::collection::vec(0..MAX_PARTS, 1..20)) {
            let mut before = 0;
            for parts in exports {
                let after = config_maps(before, parts);
                prop_assert!(after >= parts);
                prop_assert_eq!(after == before, parts <= before);
                // The next segments of the same network may take a file more.
                prop_assert!(after == before || config_maps(after, parts + 1) == after);
                before = after;
            }
        }
    }
}
