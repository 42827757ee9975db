//! `hawser limit reset`.

use std::collections::BTreeMap;

use hawser_limit::{DeviceLimits, Limiter};

use super::apply;
use super::failed::Failed;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct ResetArgs {
    /// Only on this device; may be given several times
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Print what would be changed, as commands, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ResetArgs {
    /// The arguments of `-r`.
    pub fn of_letters() -> Self {
        Self {
            devices: Vec::new(),
            dry_run: false,
            json: false,
        }
    }
}

/// Removes the limits.
pub fn run(args: &ResetArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?;
    let devices = match args.devices.is_empty() {
        true => limiter.devices()?,
        false => args.devices.clone(),
    };
    let nothing = |device| (device, DeviceLimits::default());
    let nothing: BTreeMap<_, _> = devices.into_iter().map(nothing).collect();
    if args.dry_run {
        return apply::dry_run(&limiter.plan(&nothing)?, Vec::new(), args.json);
    }
    let outcome = limiter.apply(&nothing)?;
    let orphans = limiter.remove_orphans()?;
    let devices = [&outcome.failed, &orphans.failed];
    let failed: Vec<Failed> = devices.into_iter().flat_map(Failed::devices).collect();
    apply::report(outcome.done, &failed, args.json)
}
