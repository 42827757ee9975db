//! Signals for the command.

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::{Doing, Failure};

/// The signals that are forwarded.
const FORWARDED_SIGNALS: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TERM,
];

/// The signals that arrive at this process.
pub(super) struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// Begins to watch for them; they do not end this process any more.
    pub(super) fn watch() -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel(FORWARDED_SIGNALS.len());
        for one in FORWARDED_SIGNALS {
            let kind = SignalKind::from_raw(one.as_raw());
            let mut arriving = signal(kind).doing("waiting for signals")?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while arriving.recv().await.is_some() {
                    if sender.send(one).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self(receiver))
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// Sends the signal to the command, unless it has that already: a terminal sends the signals of its
/// keys to all processes in the foreground.
pub(super) fn forward(command: Pid, signal: Signal) {
    let is_of_terminal = [Signal::INT, Signal::QUIT].contains(&signal) && is_in_foreground();
    if !is_of_terminal {
        // The command may have ended.
        let _ = kill_process(command, signal);
    }
}

fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let group = terminal.and_then(|terminal| Ok(rustix::termios::tcgetpgrp(terminal)?));
    group.is_ok_and(|group| group == getpgrp())
}
