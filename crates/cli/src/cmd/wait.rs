//! Waiting for the other side of a command.

use std::time::Duration;

use super::quantity::long_duration;

/// Whether a command waits for what is not there yet.
#[derive(clap::Args)]
pub struct WaitArgs {
    /// Wait until the other side is there, or this time is over
    ///
    /// A time is for example 30s, 5m or 2h; without one it waits as long as it takes. Whatever else
    /// fails ends the command at once.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, value_parser = long_duration)]
    #[allow(
        clippy::option_option,
        reason = "clap has no other type for an optional value"
    )]
    wait: Option<Option<Duration>>,
}

impl WaitArgs {
    /// How long it waits: zero for not at all, [`Duration::MAX`] without an end.
    pub fn time(&self) -> Duration {
        match self.wait {
            None => Duration::ZERO,
            Some(time) => time.unwrap_or(Duration::MAX),
        }
    }
}
