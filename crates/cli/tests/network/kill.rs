//! Processes are killed and paused at random moments, each that a user runs: the rest must continue,
//! files must be identical, nobody may be dropped for being late, and nothing may remain.
//!
//! `HAWSER_KILL_ROUNDS` sets the number of rounds (by default one per kind of victim),
//! `HAWSER_KILL_SEED` the moments: a failure prints it.

mod bed;

use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use self::bed::{Bed, Transfer};
use crate::support::{eventually, kill, pause, runs};

/// The process to kill or to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Demo,
    Bench,
    Get,
    Seed,
    Send,
    Receive,
    Router,
    Control,
    Supervisor,
}

const KILLED: [Victim; 9] = [
    Victim::Demo,
    Victim::Bench,
    Victim::Get,
    Victim::Seed,
    Victim::Send,
    Victim::Receive,
    Victim::Router,
    Victim::Control,
    Victim::Supervisor,
];

/// Those that a transfer has to wait for.
const PAUSED: [Victim; 6] = [
    Victim::Get,
    Victim::Seed,
    Victim::Send,
    Victim::Receive,
    Victim::Router,
    Victim::Control,
];

/// Seconds of pauses, where the number of rounds is set. By default all are of 2 seconds: longer than
/// a peer may be silent before its blocks are requested elsewhere.
const PAUSES: [u64; 5] = [1, 3, 6, 12, 30];

pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

/// What happens in a round.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill(Victim),
    Pause(Victim, Duration),
}

impl Fault {
    /// By default one of each kind in turn, otherwise any.
    fn of_round(round: u64, is_random: bool, chance: &mut fastrand::Rng) -> Self {
        let kinds = KILLED.len() + PAUSED.len();
        let kind = match is_random {
            true => chance.usize(..kinds),
            false => round as usize,
        };
        let seconds = match is_random {
            true => PAUSES[chance.usize(..PAUSES.len())],
            false => 2,
        };
        match kind.checked_sub(KILLED.len()) {
            None => Self::Kill(KILLED[kind]),
            Some(paused) => Self::Pause(PAUSED[paused], Duration::from_secs(seconds)),
        }
    }
}

#[test]
fn random_kills_lose_nothing_and_leave_nothing() {
    let seed = number("HAWSER_KILL_SEED").unwrap_or_else(|| std::process::id().into());
    let rounds = number("HAWSER_KILL_ROUNDS");
    let mut chance = fastrand::Rng::with_seed(seed);
    let Some(mut bed) = Bed::make() else {
        return;
    };
    for round in 0..rounds.unwrap_or((KILLED.len() + PAUSED.len()) as u64) {
        let fault = Fault::of_round(round, rounds.is_some(), &mut chance);
        let after = match fault {
            Fault::Kill(_) => chance.u64(..1200),
            // By then something has been transferred.
            Fault::Pause(..) => chance.u64(300..1200),
        };
        let after = Duration::from_millis(after);
        let service = chance.usize(..2);
        eprintln!("HAWSER_KILL_SEED={seed} round {round}: {fault:?} after {after:?}");
        match fault {
            Fault::Kill(victim) => kill_one(&mut bed, victim, after, service),
            Fault::Pause(victim, time) => pause_one(&mut bed, victim, after, time, service),
        }
    }
    bed.clear();
}

/// Kills `victim` while something is under way, and sees to it that the job gets done all the same.
fn kill_one(bed: &mut Bed, victim: Victim, after: Duration, service: usize) {
    match victim {
        Victim::Demo => show(
            bed,
            &["demo", "--topology", "fig4", "--size", "8MiB"],
            after,
        ),
        Victim::Bench => show(
            bed,
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
        Victim::Send => {
            let mut transfer = Transfer::start(bed);
            end(&mut transfer.send, after);
            transfer.send_again(bed);
            transfer.finish(bed);
        }
        Victim::Receive => {
            let mut transfer = Transfer::start(bed);
            std::thread::sleep(after);
            transfer.restart_receiver(bed);
            transfer.finish(bed);
        }
        Victim::Router | Victim::Control => {
            let get = bed.get();
            std::thread::sleep(after);
            kill(&[bed.service(victim == Victim::Router, service)]);
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

/// Pauses `victim` while something is under way, which must continue by itself.
fn pause_one(bed: &mut Bed, victim: Victim, after: Duration, time: Duration, service: usize) {
    if matches!(victim, Victim::Send | Victim::Receive) {
        let transfer = Transfer::start(bed);
        std::thread::sleep(after);
        let paused = match victim {
            Victim::Send => &transfer.send,
            _ => transfer.receiver(),
        };
        pause(paused.id().into(), time);
        return transfer.finish(bed);
    }
    let get = bed.get();
    std::thread::sleep(after);
    let pid = match victim {
        Victim::Get => get.id().into(),
        Victim::Seed => bed.seeder().into(),
        _ => bed.service(victim == Victim::Router, service),
    };
    pause(pid, time);
    bed.finish(|_| get);
    // A supervisor may have taken a paused service for dead, and started another.
    eventually("all services run", || is_whole(&bed.status()));
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
    bed.await_end(&mark);
}

fn end(child: &mut Child, after: Duration) {
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!runs(child.id().into()));
}
