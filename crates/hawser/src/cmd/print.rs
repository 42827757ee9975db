//! Reports for programs, on standard output.

use serde::Serialize;

use crate::cli::Format;
use crate::failure::{Doing, Failure};
use crate::out::{out, outln};

/// Prints JSON on one line.
pub fn json(report: &impl Serialize) -> Result<(), Failure> {
    outln!("{}", serde_json::to_string(report).doing("writing JSON")?);
    Ok(())
}

/// Prints JSON on indented lines.
pub fn pretty_json(report: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).doing("writing JSON")?;
    outln!("{text}");
    Ok(())
}

/// Prints JSON or YAML; false, and nothing is printed, when the format is that for people.
pub fn document(format: Format, report: &impl Serialize) -> Result<bool, Failure> {
    match format {
        Format::Human => return Ok(false),
        Format::Json => pretty_json(report)?,
        Format::Yaml => {
            let text = serde_saphyr::to_string(report).doing("writing YAML")?;
            out(format_args!("{text}"));
        }
    }
    Ok(true)
}
