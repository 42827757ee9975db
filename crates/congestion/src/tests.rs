mod bottleneck;
mod coupling;
mod cubic;
mod far;
mod link;
mod rate_controls;
mod starts;

use std::time::{Duration, Instant};

use self::bottleneck::{Link, PACKET, Sender, run, run_network, share};
use crate::{Algorithm, Announced, Congestion, Coupling, RateControl, WindowControl};

const MS: Duration = Duration::from_millis(1);

fn announcing(bandwidth: Option<u64>, rtt: Option<Duration>) -> Announced {
    Announced { bandwidth, rtt }
}

/// A sender with CUBIC or BBR that begins after some seconds.
fn window(setting: Congestion, announced: Announced, begins: u64) -> Sender<WindowControl> {
    let control = WindowControl::new(Instant::now(), PACKET as u16, announced, setting, begins);
    Sender::with(control).active([Duration::from_secs(begins)..Duration::MAX])
}
