//! The arguments of `hawser bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::size;

#[derive(Args)]
pub struct BenchArgs {
    /// The experiment
    #[arg(value_enum)]
    pub experiment: BenchName,
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

/// An experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchName {
    /// One path and two, on two links between two ASes (001, Fig. 5)
    Fig5,
    /// The two shortest paths, which share a link, against disjoint ones (001, Fig. 8)
    Fig8,
    /// Two leechers that choose one path each, against the seeder choosing for both (001, Fig. 10)
    Fig10,
    /// Cross traffic on one of two paths between second 10 and 20 (000, 5.3.1)
    CongestOne,
    /// Cross traffic on both of two paths between second 10 and 20 (000, 5.3.2)
    CongestBoth,
    /// 1, 2, 3, 5 and 10 downloads at once (000, 5.4.2)
    Concurrent,
    /// Three downloads at once, of files of several sizes (000, 5.4.3)
    Filesize,
    /// Every way to choose two of three paths, two of which share a link
    Strategies,
    /// One to eight disjoint paths of the same limit
    Paths,
    /// Paths that differ in rate and delay, and a bad one beside good ones
    Unequal,
}

/// Reads `82%` as 0.82.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(percent) if (1.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write for example 82%, from 1% to 1000%".to_owned()),
    }
}
