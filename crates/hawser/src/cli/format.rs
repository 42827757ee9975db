//! The form of a report.

use clap::{Args, ValueEnum};

/// How a report is printed.
#[derive(Args)]
pub struct FormatArgs {
    /// How to print it: human, json or yaml
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    format: Option<Format>,
    /// Short for --format json
    #[arg(long, short)]
    json: bool,
    /// Print no colours; there are none anyway unless the output is a terminal
    #[arg(long)]
    pub no_color: bool,
}

impl FormatArgs {
    /// The format wanted.
    pub fn format(&self) -> Format {
        self.format.unwrap_or(match self.json {
            true => Format::Json,
            false => Format::Human,
        })
    }
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
    /// The same fields as YAML.
    Yaml,
}
