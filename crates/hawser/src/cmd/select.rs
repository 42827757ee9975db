//! The strategies that a command's arguments name.

use std::path::Path;

use hawser_path::{Carbon, Select};

use super::files;
use crate::cli::SelectArgs;
use crate::failure::Failure;

/// The strategies, with the carbon table if there is one.
///
/// # Errors
/// Wrong use, if the table cannot be read or nothing is chosen by it.
pub fn read(args: &SelectArgs) -> Result<Select, Failure> {
    let select = args.select.clone().unwrap_or_else(Select::disjoint);
    with_carbon(select, args.carbon.as_deref())
}

/// Adds the carbon table of a file, if there is one.
///
/// # Errors
/// As [`read`].
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
    let text = files::read_text(file).map_err(|error| wrong(&error))?;
    let table: Carbon = text.parse().map_err(|error| wrong(&error))?;
    Ok(select.with_carbon(&table))
}
