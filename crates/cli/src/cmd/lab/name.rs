//! The lab that a command applies to.

use hawser_lab::{Lab, NameError};

use crate::failure::Failure;

#[derive(clap::Args)]
pub struct LabName {
    /// The lab's name, when several run at once
    #[arg(long, value_name = "NAME", default_value = hawser_lab::DEFAULT_NAME, value_parser = checked)]
    pub name: String,
}

impl LabName {
    /// Opens the lab.
    ///
    /// # Errors
    /// When no lab of that name is up.
    pub fn open(&self) -> Result<Lab, Failure> {
        Ok(Lab::open(&self.name)?)
    }
}

fn checked(name: &str) -> Result<String, NameError> {
    hawser_lab::check_name(name).map(|()| name.to_owned())
}
