//! The arguments of a download that seeds when it is done.

use std::time::Duration;

use clap::Args;
use hawser_torrent::SeedLimits;

use super::quantity::long_duration;

/// How long a download seeds when it is done.
#[derive(Args)]
pub struct SeedingArgs {
    /// Go on seeding when done, until interrupted
    #[arg(long)]
    seed: bool,
    /// Go on seeding until RATIO times the torrent's size was sent, for example 1.5
    #[arg(long, value_name = "RATIO", value_parser = ratio, allow_hyphen_values = true)]
    seed_ratio: Option<f64>,
    /// Go on seeding for this time, for example 30m; with --seed-ratio until the first of both
    #[arg(long, value_name = "TIME", value_parser = seed_time, allow_hyphen_values = true)]
    seed_time: Option<Duration>,
}

impl SeedingArgs {
    /// When seeding ends; `None` where nothing is to be seeded.
    pub fn limits(&self) -> Option<SeedLimits> {
        let limits = SeedLimits {
            ratio: self.seed_ratio,
            time: self.seed_time,
        };
        (self.seed || limits != SeedLimits::default()).then_some(limits)
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio: Option<f64> = text.parse().ok();
    ratio
        .filter(|ratio| *ratio > 0.0 && ratio.is_finite())
        .ok_or_else(|| {
            format!(
                "{text:?} is not a ratio: write a number above 0, for example 1.5, \
                 or --seed alone for no limit"
            )
        })
}

fn seed_time(text: &str) -> Result<Duration, String> {
    let time = long_duration(text)?;
    match time.is_zero() {
        true => Err("write a time above 0, or leave it out to end when done".to_owned()),
        false => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(ratio("1.5"), Ok(1.5));
        for wrong in ["0", "-1", "inf", "nan", "", "half"] {
            let error = ratio(wrong).unwrap_err();
            assert!(error.contains("above 0"), "{wrong}: {error}");
        }
        assert_eq!(seed_time("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(seed_time("1.5h"), Ok(Duration::from_secs(5400)));
        assert!(seed_time("0s").unwrap_err().contains("above 0"));
        assert!(seed_time("30").unwrap_err().contains("30m"));
    }
}
