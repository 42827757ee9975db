//! SIGKILL at random moments against everything that a user runs: the rest must continue, files
//! must be identical, and nothing may remain.
//!
//! `HAWSER_KILL_ROUNDS` sets the number of rounds (by default one per kind of victim),
//! `HAWSER_KILL_SEED` the moments: a failure prints it.

mod bed;

use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use self::bed::Bed;
use crate::support::{eventually, kill, runs};

/// The process to kill.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Demo,
    Bench,
    Get,
    Seed,
    Router,
    Control,
    Supervisor,
}

const VICTIMS: [Victim; 7] = [
    Victim::Demo,
    Victim::Bench,
    Victim::Get,
    Victim::Seed,
    Victim::Router,
    Victim::Control,
    Victim::Supervisor,
];

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
    )
}

#[test]
fn random_kills_lose_nothing_and_leave_nothing() {
    let seed = number("HAWSER_KILL_SEED").unwrap_or_else(|| std::process::id().into());
    let rounds = number("HAWSER_KILL_ROUNDS");
    let mut chance = fastrand::Rng::with_seed(seed);
    let Some(mut bed) = Bed::make() else {
        return;
    };
    for round in 0..rounds.unwrap_or(VICTIMS.len() as u64) {
        // By default each kind once.
        let victim = match rounds {
            None => VICTIMS[round as usize],
            Some(_) => VICTIMS[chance.usize(..VICTIMS.len())],
        };
        let after = Duration::from_millis(chance.u64(..1200));
        eprintln!("HAWSER_KILL_SEED={seed} round {round}: {victim:?} after {after:?}");
        match victim {
            Victim::Demo => show(
                &mut bed,
                &["demo", "--topology", "fig4", "--size", "8MiB"],
                after,
            ),
            Victim::Bench => show(
                &mut bed,
                &["bench", "fig5", "--repeat", "1", "--size", "4MiB"],
                after,
            ),
            Victim::Get => {
                let mut get = bed.get();
                end(&mut get, after);
                bed.finish(|bed| bed.get());
            }
            Victim::Seed => {
                let get = bed.get();
                std::thread::sleep(after);
                bed.kill_seed();
                bed.seed();
                bed.finish(|_| get);
            }
            Victim::Router | Victim::Control => {
                let get = bed.get();
                std::thread::sleep(after);
                let status = bed.status();
                let at = chance.usize(..2);
                let service = match victim {
                    Victim::Router => &status["ases"][at]["routers"][0],
                    _ => &status["ases"][at]["control"],
                };
                kill(&[service["pid"].as_i64().unwrap()]);
                bed.finish(|_| get);
                eventually("all services run", || is_whole(&bed.status()));
            }
            Victim::Supervisor => {
                let mut get = bed.get();
                std::thread::sleep(after);
                kill(&[bed.status()["supervisor"]["pid"].as_i64().unwrap()]);
                // Also ends the processes inside: the download and the seeder.
                bed.up();
                get.wait().unwrap();
                bed.kill_seed();
                bed.seed();
                bed.finish(|bed| bed.get());
            }
        }
    }
    bed.clear();
}

fn is_whole(status: &Value) -> bool {
    let ases = status["ases"].as_array().unwrap();
    ases.iter()
        .all(|as_| as_["control"]["alive"] == true && as_["routers"][0]["alive"] == true)
}

/// Kills a command that has its own network.
fn show(bed: &mut Bed, args: &[&str], after: Duration) {
    let (mut child, mark) = bed.show(args);
    end(&mut child, after);
    eventually("the end of all it started", || {
        bed::marked(&mark).is_empty()
    });
    // The next start removes the rest.
    bed.status();
    bed.assert_only_own_folders();
}

fn end(child: &mut Child, after: Duration) {
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!runs(child.id().into()));
}
