//! Carriers and routers are paused, and carriers killed, at random moments of a transfer: no byte may
//! be lost, and no connection may end.
//!
//! `HAWSER_KILL_ROUNDS` and `HAWSER_KILL_SEED` are those of the test of kills.

use std::time::Duration;

use super::bed::{Bed, CLIENT, Carrier, SERVER};
use super::{Transfer, both};
use crate::kill::number;
use crate::support::{eventually, pause};

/// What happens in a round.
#[derive(Debug, Clone, Copy)]
enum Fault {
    PauseClient,
    PauseServer,
    PauseRouter,
    KillClient,
    KillServer,
}

const FAULTS: [Fault; 5] = [
    Fault::PauseClient,
    Fault::PauseServer,
    Fault::PauseRouter,
    Fault::KillClient,
    Fault::KillServer,
];

/// Seconds of pauses, where the number of rounds is set; otherwise all are of 2 seconds.
const PAUSES: [u64; 4] = [1, 3, 6, 12];

#[test]
fn connections_outlive_pauses_and_kills_at_random() {
    let seed = number("HAWSER_KILL_SEED").unwrap_or_else(|| std::process::id().into());
    let rounds = number("HAWSER_KILL_ROUNDS");
    let mut chance = fastrand::Rng::with_seed(seed);
    let Some(bed) = Bed::new("shim-paused") else {
        return;
    };
    let (server, client) = both(&bed);
    let (mut server, mut client) = (Some(server), Some(client));
    let pid = |carrier: &Option<Carrier>| carrier.as_ref().unwrap().pid();
    for round in 0..rounds.unwrap_or(FAULTS.len() as u64) {
        let (fault, time) = match rounds {
            None => (FAULTS[round as usize], 2),
            Some(_) => (
                FAULTS[chance.usize(..FAULTS.len())],
                PAUSES[chance.usize(..PAUSES.len())],
            ),
        };
        let time = Duration::from_secs(time);
        eprintln!("HAWSER_KILL_SEED={seed} round {round}: {fault:?}, pauses of {time:?}");
        Transfer::new(&bed).run(|_| match fault {
            Fault::PauseClient => pause(pid(&client), time),
            Fault::PauseServer => pause(pid(&server), time),
            Fault::PauseRouter => {
                let status = bed.lab.status();
                let router = &status["ases"][chance.usize(..2)]["routers"][0];
                pause(router["pid"].as_i64().unwrap(), time);
            }
            Fault::KillClient => {
                client.take().unwrap().kill();
                client = Some(bed.use_shim(server.as_ref().unwrap(), &[]));
            }
            Fault::KillServer => {
                server.take().unwrap().kill();
                server = Some(bed.serve(&["--expose", "all"]));
            }
        });
        for isd_as in [CLIENT, SERVER] {
            assert_eq!(bed.failures(isd_as), [""; 0], "{fault:?}");
        }
    }
    eventually("all paths are back", || bed.paths().len() == 4);
}
