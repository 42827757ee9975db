//! Showing something again and again.

use std::time::Duration;

use hawser_topology::parse_duration;

/// Shortest time between two readings.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Whether a report is shown again, and how often.
#[derive(clap::Args, Default)]
pub struct WatchArgs {
    /// Show it again every second, or as often as this says, until interrupted
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
        default_missing_value = "1s", value_parser = interval)]
    pub watch: Option<Duration>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match time >= MIN_INTERVAL {
        true => Ok(time),
        false => Err("the shortest time is 100ms".to_owned()),
    }
}
