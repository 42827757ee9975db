//! The paths that this host knows to an AS.

use hawser_endhost::{Endhost, IsdAsn, Path, PathsError};
use hawser_path::Sequence;

use crate::failure::Failure;

/// The paths to `dst` that follow `sequence`, in the order in which they are offered; none if no
/// path exists or all are down.
///
/// # Errors
/// When paths cannot be looked up.
pub async fn paths(
    host: &Endhost,
    dst: IsdAsn,
    refresh: bool,
    sequence: Option<&Sequence>,
) -> Result<Vec<Path>, Failure> {
    let paths = match refresh {
        true => host.refresh_paths(dst).await,
        false => host.paths(dst).await,
    };
    let mut paths = match paths {
        Ok(paths) => paths,
        Err(PathsError::None { .. } | PathsError::AllDown { .. }) => Vec::new(),
        Err(error) => return Err(Failure::job(error)),
    };
    paths.retain(|path| sequence.is_none_or(|sequence| sequence.matches(path.info())));
    Ok(paths)
}

/// Orders paths as `scion showpaths` does: the shortest first, then by their interfaces, then by
/// when they expire.
pub fn sort(paths: &mut [Path]) {
    paths.sort_by_cached_key(|path| {
        let interfaces = path.info().interfaces.clone();
        (interfaces.len(), interfaces, path.expiry())
    });
}
