//! Runs simulations.

use std::time::Duration;

use hawser_manager::SelectBy;
use hawser_topology::Network;

use crate::choose::Decided;
use crate::options::{Options, SimulateError};
use crate::outcome::Outcome;
use crate::swarm::Swarm;

/// The progress of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time since the beginning.
    pub time: Duration,
    /// Number of complete leechers.
    pub finished: usize,
}

/// Runs a swarm in a network until all leechers are complete, or the time is over. `progress` is
/// called every virtual second.
///
/// # Errors
/// When the options do not fit the network, as [`SimulateError`] says.
pub fn simulate(
    network: &Network,
    options: &Options,
    by: SelectBy,
    mut progress: impl FnMut(Progress),
) -> Result<Outcome, SimulateError> {
    let swarm = run(network, options, by, None, &mut progress)?;
    Ok(Outcome::of(&swarm, by))
}

/// Runs the same simulation, and returns every decision about a path.
///
/// # Errors
/// When the options do not fit the network, as [`SimulateError`] says.
pub fn decisions(
    network: &Network,
    options: &Options,
    by: SelectBy,
) -> Result<Vec<Decided>, SimulateError> {
    let swarm = run(network, options, by, Some(Vec::new()), &mut |_| {})?;
    Ok(swarm.orders.log.unwrap_or_default())
}

fn run(
    network: &Network,
    options: &Options,
    by: SelectBy,
    log: Option<Vec<Decided>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Swarm, SimulateError> {
    options.check()?;
    let mut swarm = Swarm::new(network, options, by)?;
    swarm.orders.log = log;
    while swarm.now() < options.duration {
        let finished = swarm.finished();
        if finished == options.hosts.leechers {
            break;
        }
        if swarm.now().subsec_nanos() == 0 {
            progress(Progress {
                time: swarm.now(),
                finished,
            });
        }
        swarm.step()?;
    }
    Ok(swarm)
}
