//! Reports for people or for programs, on standard output.

use clap::ValueEnum;
use serde::Serialize;

use super::headings;
use crate::failure::{Doing, Failure};
use crate::out::{out, outln};
use crate::paint::Paint;

/// How a report is printed.
#[derive(clap::Args)]
pub struct FormatArgs {
    /// How to print it: human, json or yaml
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, help_heading = headings::RARE, hide_short_help = true)]
    format: Option<Format>,
    /// Short for --format json
    #[arg(long, short)]
    json: bool,
    /// Print no colours; there are none anyway unless the output is a terminal
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    no_color: bool,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
    /// The same fields as YAML.
    Yaml,
}

impl FormatArgs {
    fn format(&self) -> Format {
        let default = if self.json {
            Format::Json
        } else {
            Format::Human
        };
        self.format.unwrap_or(default)
    }

    /// Whether the report is for people.
    pub fn is_human(&self) -> bool {
        self.format() == Format::Human
    }

    /// Whether the report is JSON.
    pub fn is_json(&self) -> bool {
        self.format() == Format::Json
    }

    /// The colours of the report.
    pub fn paint(&self) -> Paint {
        Paint::new(self.no_color)
    }

    /// Prints JSON or YAML; returns false without printing when the report is for people.
    pub fn document(&self, report: &impl Serialize) -> Result<bool, Failure> {
        match self.format() {
            Format::Human => return Ok(false),
            Format::Json => pretty_json(report)?,
            Format::Yaml => {
                let text = serde_saphyr::to_string(report).doing("writing YAML")?;
                out(format_args!("{text}"));
            }
        }
        Ok(true)
    }
}

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
