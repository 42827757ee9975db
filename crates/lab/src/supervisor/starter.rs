//! The supervisor's connection to the command that brings the lab up.

use std::fs::File;
use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

use crate::dir::LabDir;
use crate::place::Lock;
use crate::report::{Message, Report, UpProgress};

/// The command that started this process. It reads a report from this process's standard output,
/// and shares the lab's lock, which is standard input: if the command is killed, the next command
/// on the lab waits until this process has cleared up.
pub(super) struct Starter {
    lock: Lock,
}

impl Starter {
    pub fn new(dir: &LabDir) -> io::Result<Self> {
        let lock = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        // Services inherit standard input, and must not hold the lock.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self {
            lock: Lock::inherited(dir.path(), lock),
        })
    }

    /// Fails if the command has ended: the lab must not come up then.
    pub fn check(&self) -> io::Result<()> {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        // pipe(7): the write end of a pipe is in error if the read end is closed.
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let ended = polled.is_ok() && fds[0].revents().contains(PollFlags::ERR);
        match ended {
            true => Err(io::Error::other(
                "the command that brings the lab up has ended",
            )),
            false => Ok(()),
        }
    }

    /// Says what is done next. Fails if the command has ended.
    pub fn progress(&self, progress: UpProgress) -> io::Result<()> {
        write(&Message::Progress(progress))
    }

    /// Writes the report, and closes the pipe.
    pub fn report(&self, report: Report) -> io::Result<()> {
        write(&Message::Report(report))?;
        let null = File::options().write(true).open("/dev/null")?;
        Ok(rustix::stdio::dup2_stdout(&null)?)
    }

    /// Gives up this process's share of the lock, which the command still holds.
    pub fn release(self) {
        self.lock.leave();
    }
}

fn write(message: &Message) -> io::Result<()> {
    let mut out = io::stdout();
    serde_json::to_writer(&mut out, message)?;
    out.write_all(b"\n")?;
    out.flush()
}
