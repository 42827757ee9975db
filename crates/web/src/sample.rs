//! Sampling the use of links, for live data and history.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::live::now;

/// Time between two samples.
const TICK: Duration = Duration::from_secs(1);

/// Samples the use of links each second, and when the state changes. Never ends.
pub async fn sample(app: App) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut revision = app.coordinator().subscribe();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // A change is shown at once.
            changed = revision.changed() => if changed.is_err() {
                return;
            },
        }
        let number = *revision.borrow_and_update();
        let (reports, state) = (app.coordinator().usage(), app.coordinator().state());
        let at = now();
        let used = app.live().sampler().tick(at, &reports, &state);
        app.live().publish(at, number, used);
    }
}
