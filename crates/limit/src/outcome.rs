//! What became of each device.

use std::collections::BTreeMap;

use crate::error::LimitError;

/// What was done on several devices. The failure of one is no failure of the others.
#[derive(Debug, Default)]
#[must_use = "devices may have failed"]
pub struct Outcome<T> {
    /// What was done on the devices that did not fail.
    pub done: T,
    /// The devices that failed, each with the reason.
    pub failed: BTreeMap<String, LimitError>,
}

impl<T> Outcome<T> {
    /// What was done, if no device failed.
    ///
    /// # Errors
    /// The error of the first device that failed, in the order of their names.
    pub fn all(self) -> Result<T, LimitError> {
        match self.failed.into_values().next() {
            None => Ok(self.done),
            Some(error) => Err(error),
        }
    }
}
