//! What becomes of captured destinations while nothing captures them.

use std::fmt;
use std::str::FromStr;

use hawser_capture::{Guard, RedirectError, is_there};
use serde::{Deserialize, Serialize};

/// The name of the nf_tables table of captures.
pub(super) const TABLE: &str = "hawser-shim";
/// The name of the nf_tables table that stays.
pub(super) const GUARD: &str = "hawser-closed";

/// What becomes of connections and packets to captured destinations once a holder has ended without
/// being taken down, as when it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailMode {
    /// They leave by ordinary routes, as if there had been no shim.
    #[default]
    Open,
    /// They are rejected, until a shim captures them again, or is taken down.
    Closed,
}

impl fmt::Display for FailMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Closed => "closed",
        })
    }
}

impl FromStr for FailMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "open" => Ok(Self::Open),
            "closed" => Ok(Self::Closed),
            _ => Err("write open or closed".to_owned()),
        }
    }
}

/// Has the destinations that an ended holder guarded be reached by ordinary routes again, in the calling
/// thread's network namespace. Without effect while a holder captures there. Returns whether there was
/// something to remove.
///
/// # Errors
/// [`RedirectError`].
pub fn remove_guard() -> Result<bool, RedirectError> {
    match is_there(TABLE)? {
        true => Ok(false),
        false => Guard::remove_left(GUARD),
    }
}

/// Whether destinations are rejected that an ended holder captured, in the calling thread's network
/// namespace. `false` if that cannot be found out, as without root.
pub fn is_guarded() -> bool {
    let is_held = is_there(TABLE).unwrap_or(true);
    !is_held && is_there(GUARD).unwrap_or(false)
}
