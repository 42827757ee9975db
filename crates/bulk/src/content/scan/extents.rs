//! The parts of a file that are not holes.

use std::fs::File;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::content::manifest::{Extent, MAX_EXTENTS};

/// The extents of a file of `size` bytes (lseek(2), `SEEK_DATA`).
pub(crate) fn extents(file: &File, size: u64) -> Result<Vec<Extent>, Errno> {
    let mut extents = Vec::new();
    let mut at = 0;
    while at < size {
        let offset = match seek(file, SeekFrom::Data(at)) {
            Ok(offset) => offset,
            // No data from there to the end.
            Err(Errno::NXIO) => break,
            // A file system without holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                return Ok(vec![Extent {
                    offset: 0,
                    length: size,
                }]);
            }
            Err(errno) => return Err(errno),
        };
        // The file may have grown; what is beyond its size when it was found is not sent.
        let end = seek(file, SeekFrom::Hole(offset))?.min(size);
        if offset < end {
            extents.push(Extent {
                offset,
                length: end - offset,
            });
        }
        at = end.max(offset);
        if offset >= size {
            break;
        }
    }
    merge(&mut extents, MAX_EXTENTS);
    Ok(extents)
}

/// Fills the smallest holes until there are at most `most` extents.
fn merge(extents: &mut Vec<Extent>, most: usize) {
    let Some(excess) = extents.len().checked_sub(most).filter(|excess| *excess > 0) else {
        return;
    };
    let hole = |pair: &[Extent]| pair[1].offset - pair[0].end();
    let mut holes: Vec<u64> = extents.windows(2).map(hole).collect();
    let (_, largest, _) = holes.select_nth_unstable(excess - 1);
    let largest = *largest;
    extents.dedup_by(|next, before| {
        let is_filled = next.offset - before.end() <= largest;
        if is_filled {
            before.length = next.end() - before.offset;
        }
        is_filled
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_holes_are_filled(
            runs in proptest::collection::vec((1u64..9, 1u64..9), 1..60),
            most in 1usize..20,
        ) {
            let mut at = 0;
            let before: Vec<Extent> = runs.iter().map(|(hole, length)| {
                let extent = Extent { offset: at + hole, length: *length };
                at = extent.end();
                extent
            }).collect();
            let mut after = before.clone();
            merge(&mut after, most);
            prop_assert!(after.len() <= most);
            prop_assert!(before.len() > most || after == before);
            for extent in &before {
                let holds = |outer: &&Extent| outer.offset <= extent.offset && extent.end() <= outer.end();
                prop_assert_eq!(after.iter().filter(holds).count(), 1);
            }
            let holes = |extents: &[Extent]| -> Vec<u64> {
                extents.windows(2).map(|pair| pair[1].offset - pair[0].end()).collect()
            };
            let kept = holes(&after);
            let filled = holes(&before).into_iter().filter(|hole| !kept.contains(hole)).max();
            prop_assert!(filled.is_none_or(|filled| kept.iter().all(|hole| *hole > filled)));
        }
    }
}
