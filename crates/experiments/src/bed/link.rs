//! Links of the network that change while transfers run.

use std::convert::Infallible;
use std::time::Duration;

use hawser_lab::LinkChange;
use hawser_path::Interface;
use tokio::time::{MissedTickBehavior, interval};

use super::TestBed;
use crate::error::ExperimentError;

impl TestBed {
    /// Changes the link at an interface, in both directions.
    ///
    /// # Errors
    /// When the link does not take the change, or has no BFD session after coming up.
    pub fn set_link(&self, at: Interface, change: &LinkChange) -> Result<(), ExperimentError> {
        let set = self.lab.set_link(at.isd_as, at.id, change);
        set.map(drop).map_err(ExperimentError::step)
    }

    /// Changes what is sent out of an interface, and leaves the other direction of its link as it is.
    ///
    /// # Errors
    /// When the link does not take the change.
    pub fn set_link_from(&self, at: Interface, change: &LinkChange) -> Result<(), ExperimentError> {
        let set = self.lab.set_link_from(at.isd_as, at.id, change);
        set.map(drop).map_err(ExperimentError::step)
    }

    /// Lets no packet pass a link for `half`, and all for as long again, in turn, until this is
    /// dropped; the link is then up or down.
    ///
    /// # Errors
    /// As [`TestBed::set_link`].
    pub async fn flap(&self, at: Interface, half: Duration) -> Result<Infallible, ExperimentError> {
        let mut ticks = interval(half);
        // A link that takes long to come up is not down for less time after it.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut up = true;
        loop {
            ticks.tick().await;
            up = !up;
            let up = Some(up);
            self.set_link(
                at,
                &LinkChange {
                    up,
                    ..LinkChange::default()
                },
            )?;
        }
    }
}
