//! Delay, jitter and loss of links.

use std::time::Duration;

use hawser_topology::Shape;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ChangeError;

/// Longest delay, jitter and queue of a link in microseconds: an hour, as in topologies.
pub(crate) const MAX_TIME_US: u64 = 3_600_000_000;

/// Delay, jitter and loss of a link, alike in both directions. The border router at each end makes them for
/// what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Emulation {
    /// Added delay in each direction, in microseconds.
    #[serde(default)]
    #[schema(required, maximum = 3600000000u64)]
    pub delay_us: u64,
    /// Largest difference of a packet's delay from that, above or below, in microseconds.
    #[serde(default)]
    #[schema(required, maximum = 3600000000u64)]
    pub jitter_us: u64,
    /// Fraction of packets lost in each direction, 0 to 1.
    #[serde(default)]
    #[schema(required, minimum = 0, maximum = 1)]
    pub loss: f64,
}

impl Emulation {
    /// Whether packets cross the link as they come.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that all are in bounds.
    ///
    /// # Errors
    /// [`ChangeError::Invalid`] names the first one that is not.
    pub(crate) fn check(&self) -> Result<(), ChangeError> {
        check_time("delay", Some(self.delay_us))?;
        check_time("jitter", Some(self.jitter_us))?;
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(ChangeError::Invalid(format!(
                "{} is not a loss: give the fraction of packets that are lost, 0 to 1",
                self.loss
            )));
        }
        Ok(())
    }

    /// As border routers and segments have it.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            delay: Duration::from_micros(self.delay_us),
            jitter: Duration::from_micros(self.jitter_us),
            loss: self.loss,
            ..Shape::default()
        }
    }
}

/// What of the delay, jitter and loss of a link is to be another; `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EmulationEdit {
    /// The delay in microseconds.
    pub delay_us: Option<u64>,
    /// The jitter in microseconds.
    pub jitter_us: Option<u64>,
    /// The fraction of packets lost.
    pub loss: Option<f64>,
}

impl EmulationEdit {
    /// Whether all stays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What comes of `before`.
    #[must_use]
    pub fn apply(&self, before: Emulation) -> Emulation {
        Emulation {
            delay_us: self.delay_us.unwrap_or(before.delay_us),
            jitter_us: self.jitter_us.unwrap_or(before.jitter_us),
            loss: self.loss.unwrap_or(before.loss),
        }
    }
}

/// Checks a time of a link, if there is one.
pub(crate) fn check_time(name: &str, time_us: Option<u64>) -> Result<(), ChangeError> {
    match time_us {
        Some(time) if time > MAX_TIME_US => Err(ChangeError::Invalid(format!(
            "a {name} of {time} microseconds is too long: give at most {MAX_TIME_US} (an hour)"
        ))),
        _ => Ok(()),
    }
}
