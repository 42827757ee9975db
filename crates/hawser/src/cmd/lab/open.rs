//! Opening a lab by its name.

use hawser_lab::Lab;

use crate::failure::Failure;

/// The lab of that name.
pub fn open(name: &str) -> Result<Lab, Failure> {
    Lab::open(name).map_err(Failure::job)
}
