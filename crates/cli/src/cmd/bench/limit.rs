//! `hawser bench limit`: the rates that limits of links keep, and what many of them cost.

use std::path::PathBuf;
use std::time::Duration;

use hawser_experiments::limit::{IpVersion, LimitBench, LimitTool, Part};
use hawser_experiments::shape::{Choice, choice};
use hawser_topology::{parse_duration, parse_rate};

use super::args::{ResultArgs, ascending, measure};
use crate::cmd::headings;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct LimitArgs {
    /// Run these only: size (goodput by the size of datagrams), rate (by the offered rate), accuracy (the
    /// error of the limit), links (throughput and cost of thousands of links)
    #[arg(long, value_name = "PART,...", value_delimiter = ',', value_parser = choice::<Part>)]
    part: Vec<Part>,
    /// Run these tools only: hawser, tc-by-hand (tc with the commands of 004)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<LimitTool>)]
    only: Vec<LimitTool>,
    /// Versions of IP of size, rate and accuracy
    #[arg(long, value_name = "4,6", value_delimiter = ',', default_values = ["4", "6"], value_parser = choice::<IpVersion>, help_heading = headings::RARE, hide_short_help = true)]
    ip: Vec<IpVersion>,
    /// Limits of accuracy, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_values = ["500kbit", "10mbit", "1gbit"], value_parser = rate)]
    limit: Vec<u64>,
    /// Readings of each point of size and rate
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = headings::RARE, hide_short_help = true)]
    readings: u16,
    /// Measure every N-th point of size and rate only, counted from the last one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10), help_heading = headings::RARE, hide_short_help = true)]
    every: u16,
    /// Length of a window of accuracy, three times as long below 1 Mbit/s, and of a run of links; at least
    /// 100ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    time: Duration,
    /// Run accuracy and links this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Numbers of links, 4 to 9998
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values = ["10", "4000"], value_parser = clap::value_parser!(u16).range(4..=9998), help_heading = headings::RARE, hide_short_help = true)]
    link_counts: Vec<u16>,
    /// Draw size and rate, in the shape of the paper's figures: SVG files in this folder, which must exist
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Replace figures that exist
    #[arg(long, requires = "plot")]
    force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        time if time < Duration::from_millis(100) => Err("at least 100ms".to_owned()),
        time => Ok(time),
    }
}

/// Reads a limit that can be measured.
fn rate(text: &str) -> Result<u64, String> {
    match parse_rate(text) {
        Ok(rate) if (100_000..=5_000_000_000).contains(&rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("from 100kbit to 5gbit".to_owned()),
    }
}

/// Runs `hawser bench limit`. Its namespaces end with this process.
pub fn run(args: LimitArgs) -> Result<(), Failure> {
    let links = ascending(args.link_counts).into_iter().map(usize::from);
    let bench = LimitBench {
        parts: Part::chosen(&args.part),
        tools: LimitTool::chosen(&args.only),
        ip: IpVersion::chosen(&args.ip),
        limits: ascending(args.limit),
        samples: args.readings,
        sample: Duration::from_secs(1),
        time: args.time,
        repeat: args.repeat,
        every: args.every.into(),
        links: links.collect(),
    };
    let result = ResultArgs {
        plot: args.plot,
        force: args.force,
        json: args.json,
    };
    measure(&bench, &result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_have_bounds() {
        assert!(time("50ms").is_err() && time("100ms").is_ok());
        assert!(rate("50kbit").is_err() && rate("6gbit").is_err());
        assert_eq!(rate("10mbit"), Ok(10_000_000));
        assert_eq!(ascending(vec![4000, 10, 4000]), [10, 4000]);
    }
}
