//! One entry of the map.

use std::fmt;
use std::num::NonZeroU8;

use super::destination::Destination;
use super::target::Target;

/// Most paths of an entry: the slots of a shim's session.
pub const MAX_PATHS: u8 = 8;

/// Where the connections to a destination go, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What programs connect to.
    pub destination: Destination,
    /// Where that is on SCION.
    pub target: Target,
    /// Most paths used at once, 1 to [`MAX_PATHS`]; `None` for the shim's default.
    pub paths: Option<NonZeroU8>,
    /// The policy of the paths, `FILE[:NAME]`; a relative path is relative to the folder of the
    /// map's file. `None` for the shim's default.
    pub policy: Option<String>,
    /// What the user noted.
    pub comment: Option<String>,
    /// The line in the map's file, from 1; 0 if it is in none.
    pub line: usize,
}

impl Entry {
    /// An entry without options, in no file.
    pub fn new(destination: Destination, target: Target) -> Self {
        Self {
            destination,
            target,
            paths: None,
            policy: None,
            comment: None,
            line: 0,
        }
    }

    /// Says that its destination has another target already, in the line where that is said.
    pub(super) fn is_mapped(&self, target: impl fmt::Display) -> String {
        format!(
            "`{}` is mapped to {target} here, and to {} in line {}: remove one of them",
            self.destination, self.target, self.line
        )
    }

    /// Sets how many paths are used at most; numbers above [`MAX_PATHS`] count as that.
    #[must_use]
    pub fn with_paths(mut self, paths: NonZeroU8) -> Self {
        let most = NonZeroU8::new(MAX_PATHS).map_or(paths, |most| most.min(paths));
        self.paths = Some(most);
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: impl Into<String>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Sets the note.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}
