//! The way to choose paths that a command's arguments name.

use std::path::Path;

use hawser_path::{Carbon, Select};

use crate::cli::SelectArgs;
use crate::cmd::document;
use crate::failure::Failure;

/// Most paths taken to a peer when nothing is said.
const PATHS: u16 = 4;

impl SelectArgs {
    /// Most paths taken.
    pub fn most(&self) -> usize {
        self.paths.unwrap_or(PATHS).into()
    }

    /// The first flag that is there, if one is.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.paths.is_some(), "--paths"),
            (self.select.is_some(), "--select"),
            (self.carbon.is_some(), "--carbon"),
        ];
        let mut given = flags.into_iter().filter(|(given, _)| *given);
        given.next().map(|(_, flag)| flag)
    }
}

/// The strategies, with the carbon table if there is one.
pub fn read(args: &SelectArgs) -> Result<Select, Failure> {
    let select = args.select.clone().unwrap_or_else(Select::disjoint);
    with_carbon(select, args.carbon.as_deref())
}

/// The same, from a file if there is one.
pub fn with_carbon(select: Select, file: Option<&Path>) -> Result<Select, Failure> {
    let Some(file) = file else {
        return Ok(select);
    };
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--carbon {}: {error}", file.display()))
    };
    if !select.uses_carbon() {
        return Err(wrong(
            &"nothing is chosen by it: add --select carbon, or for example carbon,latency",
        ));
    }
    let text = document::read(file).map_err(|error| wrong(&error))?;
    let table: Carbon = text.parse().map_err(|error| wrong(&error))?;
    Ok(select.with_carbon(&table))
}
