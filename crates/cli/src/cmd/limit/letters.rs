//! The options of SCIONLab's bandwidth limiter (004, section 5.2): `-l -r -s -b -p`.

use std::fs;
use std::path::PathBuf;

use super::settings::Settings;
use super::wanted::{ReplaceArgs, WantedArgs};
use super::{apply, reset, show};
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct LetterArgs {
    /// Set the limits that the file of links says, as SCIONLab's limiter
    #[arg(short = 'l')]
    limit: bool,
    /// Remove all limits
    #[arg(short = 'r', conflicts_with = "limit")]
    reset: bool,
    /// Show limits and what goes through them
    #[arg(short = 's')]
    show: bool,
    /// From now on, limit all other traffic to KBIT kbit/s
    #[arg(short = 'b', value_name = "KBIT")]
    bandwidth: Option<u64>,
    /// From now on, read the links from FILE
    #[arg(short = 'p', value_name = "FILE")]
    path: Option<PathBuf>,
}

/// Does what the letters say, in the order of the thesis: settings, limits, what they are.
pub fn run(args: LetterArgs) -> Result<(), Failure> {
    if args.bandwidth.is_some() || args.path.is_some() {
        let mut settings = Settings::read()?;
        if let Some(kbit) = args.bandwidth {
            let rate = kbit.checked_mul(1000).and_then(checked);
            let rate = rate.ok_or_else(|| {
                Failure::usage(format_args!(
                    "-b {kbit}: choose 8 to 100000000 kbit/s, or 0 to let nothing pass"
                ))
            })?;
            settings.default = Some(rate);
        }
        if let Some(path) = args.path {
            // Later calls may be made in another folder.
            let whole = fs::canonicalize(&path);
            let whole = whole.map_err(|error| {
                Failure::usage(format_args!("cannot read {}: {error}", path.display()))
            })?;
            settings.links = Some(whole);
        }
        settings.write()?;
    }
    if args.limit {
        apply::run(&apply::ApplyArgs::of_letters())?;
    }
    if args.reset {
        reset::run(&reset::ResetArgs::of_letters())?;
    }
    if args.show {
        show::run(&show::ShowArgs::default())?;
    }
    Ok(())
}

/// A rate that can be set.
fn checked(rate: u64) -> Option<u64> {
    use hawser_limit::Limit;
    let is_possible = rate == 0 || (Limit::MIN_RATE..=Limit::MAX_RATE).contains(&rate);
    is_possible.then_some(rate)
}

impl apply::ApplyArgs {
    fn of_letters() -> Self {
        Self::new(WantedArgs::of_letters(), ReplaceArgs { replace: false })
    }
}
