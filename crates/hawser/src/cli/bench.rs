//! The arguments of `hawser bench`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hawser_experiments::{CATALOG, Entry};

use super::quantity::size;

#[derive(Args)]
pub struct BenchArgs {
    /// The experiment
    #[arg(value_parser = experiment())]
    pub experiment: &'static Entry,
    /// Run each variant this many times
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Transfer this many bytes in each download, for example 100MB; chosen by the experiment when
    /// not given
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Rate of cross traffic, in percent of the limit of the link it is on
    #[arg(long, value_name = "PERCENT", default_value = "82%", value_parser = share)]
    pub cross: f64,
    /// Run only this variant; may be given several times
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Write a figure in the shape of the paper's: an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Replace the figure if the file exists
    #[arg(long, requires = "plot")]
    pub force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// Reads an experiment's name; help and completions list them all.
fn experiment() -> impl TypedValueParser<Value = &'static Entry> {
    let names = CATALOG.iter();
    let names = names.map(|entry| PossibleValue::new(entry.name).help(entry.summary));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut entries = CATALOG.iter();
        let found = entries.find(|entry| entry.name == name);
        found.ok_or_else(|| format!("there is no experiment {name}"))
    })
}

/// Reads `82%` as 0.82.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(percent) if (1.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write for example 82%, from 1% to 1000%".to_owned()),
    }
}
