//! What is wrong with the third path.

use std::fmt;
use std::time::Duration;

use hawser_lab::LinkChange;
use hawser_path::Interface;

use crate::bed::TestBed;
use crate::error::ExperimentError;
use crate::shape::Choice;

/// The delay that a far path has more than the others, in each direction.
const FAR: Duration = Duration::from_millis(500);
/// How long a flapping path is down, and then up.
pub(super) const FLAP: Duration = Duration::from_secs(2);
/// The limit of an asymmetric path in the direction of the acknowledgements, in bit/s.
const SLOW: u64 = 1_000_000;

/// What is wrong with the third path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It loses this percentage of packets, in each direction.
    Loss(u8),
    /// 500 ms more in each direction.
    Far,
    /// Down for 2 s and up for 2 s, in turn.
    Flap,
    /// 1 Mbit/s in the direction of the acknowledgements.
    Asymmetric,
}

impl Condition {
    /// What it does, in a few words.
    pub fn about(self) -> String {
        match self {
            Self::Loss(percent) => format!("loses {percent} % of packets"),
            Self::Far => "500 ms more in each direction".to_owned(),
            Self::Flap => "down for 2 s and up for 2 s, in turn".to_owned(),
            Self::Asymmetric => "1 Mbit/s for acknowledgements".to_owned(),
        }
    }

    /// Puts a link with this delay into this condition. `receiving` is its end at the receiver.
    pub(super) fn apply(
        self,
        bed: &TestBed,
        receiving: Interface,
        delay: Duration,
    ) -> Result<(), ExperimentError> {
        let none = LinkChange::default();
        match self {
            Self::Loss(percent) => {
                let loss = Some(f64::from(percent) / 100.0);
                bed.set_link(receiving, &LinkChange { loss, ..none })
            }
            Self::Far => {
                let delay = Some(delay + FAR);
                bed.set_link(receiving, &LinkChange { delay, ..none })
            }
            // It changes during the transfer.
            Self::Flap => Ok(()),
            Self::Asymmetric => {
                let rate = Some(Some(SLOW));
                bed.set_link_from(receiving, &LinkChange { rate, ..none })
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(percent) => f.pad(&format!("loss-{percent}")),
            Self::Far => f.pad("far"),
            Self::Flap => f.pad("flap"),
            Self::Asymmetric => f.pad("asymmetric"),
        }
    }
}

impl Choice for Condition {
    const WHAT: &'static str = "condition";
    const ALL: &'static [Self] = &[
        Self::Loss(1),
        Self::Loss(10),
        Self::Loss(30),
        Self::Far,
        Self::Flap,
        Self::Asymmetric,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Condition>();
    }
}
