//! Why each path is used or not, during a download.

use hawser_torrent::{PathProgress, PathState, Progress};

use crate::cmd::news::News;
use crate::out::{errln, plain};

/// The decision on a path and its reason, in one line: `taken: shares no interface: 2 hops`. Parts
/// of the text may be a peer's.
pub fn why(path: &PathProgress) -> Option<String> {
    let decision = path.decision.as_ref().map(ToString::to_string);
    let down = matches!(path.state, PathState::Waiting | PathState::Left);
    let said = |error: &String| decision.as_ref().is_some_and(|it| it.ends_with(error));
    let error = path.last_error.clone().filter(|_| down);
    let error = error.filter(|error| !said(error));
    let parts: Vec<String> = decision.into_iter().chain(error).collect();
    (!parts.is_empty()).then(|| plain(&parts.join("; ")))
}

/// Prints a line on standard error for each path whose reason is new.
pub fn show(news: &mut News, progress: &Progress) {
    for path in &progress.paths {
        if let Some(why) = why(path)
            && news.is_news(path.peer, path.fingerprint, &why)
        {
            errln!("{} over {}: {why}", path.peer, path.fingerprint.short());
        }
    }
}
