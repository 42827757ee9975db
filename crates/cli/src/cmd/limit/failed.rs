//! Devices and links that failed, for people and programs.

use std::collections::BTreeMap;
use std::fmt;

use hawser_limit::LimitError;
use serde::Serialize;

use crate::failure::Failure;
use crate::out::{errln, plain};

/// A device or a link whose limits are not in force, or not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The device, if it failed as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    /// The link, if it alone failed: its entry in the file of links.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// Why, and what to do.
    error: String,
}

impl Failed {
    /// A link failed.
    pub fn link(entry: String, error: &impl fmt::Display) -> Self {
        Self {
            device: None,
            link: Some(entry),
            error: error.to_string(),
        }
    }

    /// These devices failed.
    pub fn devices(failed: &BTreeMap<String, LimitError>) -> impl Iterator<Item = Self> {
        failed.iter().map(|(device, error)| Self {
            device: Some(device.clone()),
            link: None,
            error: error.to_string(),
        })
    }
}

impl fmt::Display for Failed {
    /// The errors of devices name them already.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = &self.link {
            write!(f, "{}: ", plain(link))?;
        }
        write!(f, "{}", plain(&self.error))
    }
}

/// Ends a command that did what it could: with the failures, if there are any.
pub fn finish(failed: &[Failed]) -> Result<(), Failure> {
    let Some((last, others)) = failed.split_last() else {
        return Ok(());
    };
    for one in others {
        errln!("hawser: {one}");
    }
    Err(Failure::job(last))
}
