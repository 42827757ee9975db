//! Taking a lab down, also if it has been killed in part.

use std::io;
use std::time::Duration;

use hawser_kernel::namespace;

use crate::Lab;
use crate::dir::LabDir;
use crate::error::DownError;
use crate::place::Lock;
use crate::protocol::{self, Request};
use crate::reap::{self, Certainty};
use crate::state::LabState;
use crate::stray;

/// Longest wait for the supervisor to end the lab's processes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long another command may hold the lab before it is interrupted.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for the lock after that: the command that was interrupted clears up.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// What [`Lab::down`] is doing, if it takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownProgress {
    /// Waiting for another command, which brings the lab up or changes it.
    Waiting,
    /// That command takes long: the lab's supervisor is ended.
    Interrupting,
    /// Ending this number of services, and all other processes inside the lab.
    Ending(usize),
    /// All processes have ended: the lab's folder, with this number of files and folders of ASes, is
    /// removed.
    Removing(usize),
}

impl Lab {
    /// Takes the lab down: ends all its processes, including programs that were started inside it,
    /// and removes its folder. Does nothing if the lab is down already. A lab that is coming up, as
    /// after its command was killed, is given some seconds before its supervisor is ended.
    ///
    /// Calls `progress` with each step.
    ///
    /// # Errors
    /// When a part of the lab remains; [`Lab::down`] may be called again.
    pub fn down(&self, progress: impl FnMut(DownProgress)) -> Result<(), DownError> {
        self.down_after(PATIENCE, progress)
    }

    fn down_after(
        &self,
        patience: Duration,
        mut progress: impl FnMut(DownProgress),
    ) -> Result<(), DownError> {
        let _lock = self.lock(patience, &mut progress)?;
        if let Ok(state) = self.dir.read_state() {
            progress(DownProgress::Ending(state.services().count()));
        }
        clear_with(&self.dir, || {
            let entries = std::fs::read_dir(self.dir.path());
            progress(DownProgress::Removing(entries.map_or(0, Iterator::count)));
        })
    }

    /// The lock of the lab, waited for no longer than `patience` and [`LOCK_TIMEOUT`].
    fn lock(
        &self,
        patience: Duration,
        progress: &mut impl FnMut(DownProgress),
    ) -> Result<Lock, DownError> {
        if let Some(lock) = self.root.lock_within(&self.name, Duration::ZERO)? {
            return Ok(lock);
        }
        progress(DownProgress::Waiting);
        if let Some(lock) = self.root.lock_within(&self.name, patience)? {
            return Ok(lock);
        }
        // A supervisor shares the lock while the lab comes up. The command that started it, if it
        // still runs, clears up after it and then releases the lock, too.
        if let Ok(state) = self.dir.read_state()
            && state.is_running()
        {
            refuse_inside(&state)?;
            progress(DownProgress::Interrupting);
            let end = || reap::end(&reap::open([state.supervisor])?);
            end().map_err(DownError::Process)?;
        }
        let lock = self.root.lock_within(&self.name, LOCK_TIMEOUT)?;
        lock.ok_or_else(|| DownError::Busy(self.name.clone()))
    }
}

/// Ends all processes of the lab in `dir`, which also removes its namespaces, links and limits,
/// then removes the folder. The caller must hold the lab's lock.
pub(crate) fn clear(dir: &LabDir) -> Result<(), DownError> {
    clear_with(dir, || ())
}

/// As [`clear`]; calls `removing` before it removes the folder.
fn clear_with(dir: &LabDir, removing: impl FnOnce()) -> Result<(), DownError> {
    match dir.read_state() {
        Ok(state) => {
            end(dir, &state)?;
            // A state with a changed number in it names other processes.
            stray::end(dir)?;
        }
        // No supervisor was started, or it has not written the state yet and will fail without the
        // folder; or somebody has damaged the file.
        Err(error) if error.is_not_found() || error.is_damaged() => {
            if error.is_damaged() {
                tracing::warn!("{error}");
            }
            stray::end(dir)?;
        }
        Err(error) => return Err(error.into()),
    }
    removing();
    match std::fs::remove_dir_all(dir.path()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(DownError::Remove {
            path: dir.path().to_owned(),
            source: e,
        }),
        _ => Ok(()),
    }
}

fn end(dir: &LabDir, state: &LabState) -> Result<(), DownError> {
    // After a reboot no process of the lab runs, and other processes may have the numbers.
    if !state.is_of_this_boot().map_err(DownError::Process)? {
        return Ok(());
    }
    refuse_inside(state)?;
    let namespaces = state.namespaces();
    if state.supervisor.is_alive()
        && let Err(error) = protocol::call(&dir.socket(), &Request::Stop, TIMEOUT)
    {
        // Processes that the supervisor did not end are ended below.
        tracing::warn!("{error}");
    }
    let end = || {
        reap::end(&reap::open([state.supervisor])?)?;
        reap::end(&reap::open(state.services())?)?;
        reap::clear(&namespaces, Certainty::Cookie)
    };
    end().map_err(DownError::Process)
}

/// Fails if this process is inside the lab.
fn refuse_inside(state: &LabState) -> Result<(), DownError> {
    let own = namespace::own_net().map_err(DownError::Process)?;
    match own.is_some_and(|own| state.namespaces().contains(&own)) {
        true => Err(DownError::Inside),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use hawser_topology::Network;

    use super::*;
    use crate::place::Root;
    use crate::plan::Plan;
    use crate::process::ProcessId;
    use crate::state::Settings;

    /// A lab whose supervisor is a process that holds the lock and does not answer, as one that
    /// builds a network of thousands of links after its command was killed.
    #[test]
    fn a_lab_that_is_still_built_is_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path().join("hawser/lab"));
        let lock = root.lock("large").unwrap();
        let dir = LabDir::new(root.lab("large").unwrap());
        std::fs::create_dir(dir.path()).unwrap();
        let mut command = Command::new("sleep");
        command
            .arg("1000")
            .stdin(Stdio::from(lock.share().unwrap()));
        let mut supervisor = command.spawn().unwrap();
        // The command is killed.
        drop(command);
        lock.leave();
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let mut state = LabState::new(&plan, &Settings::default(), false).unwrap();
        state.supervisor = ProcessId::of(supervisor.id() as i32).unwrap();
        dir.write_state(&state).unwrap();
        let lab = Lab {
            name: "large".to_owned(),
            root: root.clone(),
            dir,
        };

        let mut steps = Vec::new();
        lab.down_after(Duration::ZERO, |step| steps.push(step))
            .unwrap();
        supervisor.wait().unwrap();
        use DownProgress::{Ending, Interrupting, Removing, Waiting};
        let [Waiting, Interrupting, Ending(0), Removing(1..)] = &steps[..] else {
            panic!("{steps:?}");
        };
        assert!(root.traces().unwrap().is_empty());
    }
}
