//! The command that brings a lab up, as its supervisor sees it.

use std::fs::File;
use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

use super::Report;
use crate::dir::LabDir;
use crate::place::Lock;

/// The command that started this process. It awaits a report on standard output, and shares the
/// lab's lock, which is standard input: if it is killed, the next command on the lab waits until
/// this process has cleared up.
pub(super) struct Starter {
    lock: Lock,
}

/// The command has ended before the lab was up.
#[derive(Debug, thiserror::Error)]
#[error("the command that brings the lab up has ended")]
pub(super) struct StarterEnded;

impl Starter {
    pub fn new(dir: &LabDir) -> io::Result<Self> {
        let lock = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        // The lock is held by what is duplicated: services get none of it.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self {
            lock: Lock::inherited(dir.path(), lock),
        })
    }

    /// Fails when the command has ended: then nobody wants the lab.
    pub fn check(&self) -> Result<(), StarterEnded> {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        // pipe(7): the write end of a pipe that nobody reads is in error.
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let ended = polled.is_ok() && fds[0].revents().contains(PollFlags::ERR);
        match ended {
            true => Err(StarterEnded),
            false => Ok(()),
        }
    }

    /// Writes the report, and closes the pipe.
    pub fn report(&self, report: &Report) -> io::Result<()> {
        let mut out = io::stdout();
        serde_json::to_writer(&mut out, report)?;
        out.write_all(b"\n")?;
        out.flush()?;
        let null = File::options().write(true).open("/dev/null")?;
        Ok(rustix::stdio::dup2_stdout(&null)?)
    }

    /// Leaves the lock to the command.
    pub fn leave(self) {
        self.lock.leave();
    }
}
