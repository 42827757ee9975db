//! What process 1 of a container has to do: reap orphans, and pass signals on. A command that starts
//! processes does it in a process of its own, so that it never reaps those of the command.

use std::process::{Child, Command, ExitCode};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use tokio::signal::unix::{SignalKind, signal};

use crate::cmd::process;
use crate::failure::{Doing, Failure};

/// Whether this process is the first one of its PID namespace, to which the kernel gives all orphans.
pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Runs this command again as a child: passes SIGTERM, SIGINT and SIGHUP on to it, and reaps all
/// processes that end, until the child ends. Returns its exit code; 128 and the number of the signal that
/// killed it.
pub fn run() -> Result<ExitCode, Failure> {
    let runtime = process::small_runtime()?;
    runtime.block_on(async {
        let caught = |kind| signal(kind).doing("waiting for signals");
        // Before the child: process 1 loses signals that it does not catch.
        let mut ended = caught(SignalKind::child())?;
        let mut terminate = caught(SignalKind::terminate())?;
        let mut interrupt = caught(SignalKind::interrupt())?;
        let mut hangup = caught(SignalKind::hangup())?;
        let program = process::program()?;
        let child = Command::new(&program)
            .args(std::env::args_os().skip(1))
            .spawn()
            .doing(program.display())?;
        let child = pid(&child)?;
        loop {
            if let Some(status) = reap(child)? {
                return Ok(code(status));
            }
            let passed_on = tokio::select! {
                _ = ended.recv() => continue,
                _ = terminate.recv() => Signal::TERM,
                _ = interrupt.recv() => Signal::INT,
                _ = hangup.recv() => Signal::HUP,
            };
            // The child was not reaped: the number is still its own.
            kill_process(child, passed_on).doing("passing a signal on")?;
        }
    })
}

fn pid(child: &Child) -> Result<Pid, Failure> {
    let pid = Pid::from_raw(child.id().cast_signed());
    pid.ok_or_else(|| Failure::job("the child has no process number"))
}

/// Reaps all processes that have ended. Returns how `child` ended, if it has.
fn reap(child: Pid) -> Result<Option<WaitStatus>, Failure> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((ended, status))) if ended == child => return Ok(Some(status)),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(error).doing("waiting for processes"),
        }
    }
}

fn code(status: WaitStatus) -> ExitCode {
    let killed = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(killed);
    // A status that is neither is that of a process that has not ended.
    ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
}
