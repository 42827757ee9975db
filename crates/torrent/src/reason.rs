//! Why a path-level peer is used or not.

use thiserror::Error;

/// A decision of a transfer about a path, with its [`ChoiceReason`].
pub type Decision = hawser_path::Decision<ChoiceReason>;

/// Why a path was taken, left or is waiting. Printed as a short line for people.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChoiceReason {
    /// A reason that applies to the paths of any transfer.
    #[error(transparent)]
    Path(hawser_path::Reason),
    /// The peer that uploads over the path decided.
    #[error("by the uploader: {why}")]
    ByUploader {
        /// The reason it sent, in one line; it is not verified.
        why: String,
    },
    /// The peer is an IP peer: IP offers no choice of paths.
    #[error("plain IP, one way only")]
    PlainIp,
}

impl From<hawser_path::Reason> for ChoiceReason {
    fn from(reason: hawser_path::Reason) -> Self {
        match reason {
            // The remote that chooses is the uploader.
            hawser_path::Reason::RemoteChooses => Self::ByUploader {
                why: "not chosen".into(),
            },
            reason => Self::Path(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_printed_for_people() {
        let left = hawser_path::Decision::left(hawser_path::Reason::RemoteChooses);
        let left: Decision = left.convert();
        assert_eq!(left.to_string(), "left: by the uploader: not chosen");
        let limit = hawser_path::Reason::Limit {
            max: 2,
            value: None,
        };
        let left: Decision = hawser_path::Decision::left(limit.clone()).convert();
        assert_eq!(left.reason, ChoiceReason::Path(limit));
        assert_eq!(left.to_string(), "left: limit of 2 paths reached");
        let ip = Decision::taken(ChoiceReason::PlainIp);
        assert_eq!(ip.to_string(), "taken: plain IP, one way only");
    }
}
