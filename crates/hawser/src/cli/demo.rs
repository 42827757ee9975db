//! The arguments of `hawser demo`.

use std::path::PathBuf;

use clap::Args;
use hawser_experiments::DEMO_TOPOLOGIES;

use super::quantity::{RateArg, rate_or_none, size};

#[derive(Args)]
pub struct DemoArgs {
    /// fig7a (disjoint against the two shortest paths) or fig4 (two links against one)
    #[arg(long, value_name = "NAME", default_value = "fig7a", value_parser = DEMO_TOPOLOGIES)]
    pub topology: String,
    /// Transfer this file
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    pub file: Option<PathBuf>,
    /// Transfer a made-up file of this size, for example 32MiB
    #[arg(long, value_name = "N", value_parser = size)]
    pub size: Option<u64>,
    /// Give every limited link this limit instead, or `none`
    #[arg(long, value_parser = rate_or_none)]
    pub rate: Option<RateArg>,
    /// Measure plain TCP with iperf3 too, over one link of the same network: with --topology fig4
    #[arg(long)]
    pub iperf3: bool,
    /// Draw the network, the runs and the paper's bars: an SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Replace the picture if the file exists
    #[arg(long, requires = "plot")]
    pub force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}
