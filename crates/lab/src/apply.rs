//! Changing the network of a running lab.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use hawser_kernel::namespace;
use hawser_topology::{FileError, Network};

use crate::Lab;
use crate::bfd;
use crate::change::{self, LabStep, Step, keys};
use crate::error::LabError;
use crate::place::{Lock, SOCKET_PATH_MAX};
use crate::plan::{LinkId, Plan};
use crate::protocol::{self, Reply, Request};

/// Longest wait for the plan, which takes as long as that of a lab that comes up.
const PLAN_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest wait for a step: services may take half a minute to start.
const STEP_TIMEOUT: Duration = Duration::from_secs(90);

/// The reason why a lab was not changed, or not wholly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Nothing was changed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A running lab cannot take this change, or the network exceeds a bound of labs. Nothing was
    /// changed.
    #[error("{0}")]
    Refused(String),
    /// A step failed. The steps before it are done.
    #[error(
        "{step}: {reason}; {done} of {all} steps are done, and the same `hawser lab apply` does the others"
    )]
    Step {
        /// The step.
        step: LabStep,
        /// Why it failed.
        reason: LabError,
        /// Number of steps that are done.
        done: usize,
        /// Number of all steps.
        all: usize,
    },
}

impl From<FileError> for ApplyError {
    fn from(error: FileError) -> Self {
        Self::Lab(error.into())
    }
}

/// What was done, or is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Applied {
    /// The steps, in their order; empty if the lab is already as the file says.
    pub steps: Vec<LabStep>,
    /// What is left to the user.
    pub notes: Vec<String>,
    /// Links that were added and did not come up, as `1-ff00:0:110#1 - 1-ff00:0:111#1`.
    pub dead_links: Vec<String>,
}

impl Lab {
    /// Changes the running lab to another network. What is in both networks stays as it is, with its
    /// addresses, keys and processes; packets over links that are in both are not lost. Calls `progress`
    /// before each step.
    ///
    /// A change that was interrupted leaves the lab between the two networks; the next one continues from
    /// there, to the same network or to another.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn apply(
        &self,
        network: &Network,
        progress: impl FnMut(&LabStep),
    ) -> Result<Applied, ApplyError> {
        let lock = self.lock_running()?;
        self.apply_locked(&lock, network, progress)
    }

    /// The steps of [`Lab::apply`]. Changes nothing.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub fn plan(&self, network: &Network) -> Result<Applied, ApplyError> {
        let _lock = self.lock_running()?;
        let before = self.dir.read_next();
        let steps = self.plan_steps(network);
        // The supervisor plans anew before each change: this leaves a change that was interrupted as
        // it was.
        match before {
            Ok(before) => self.dir.write_next(&before)?,
            Err(_) => self.dir.remove_next()?,
        }
        Ok(Applied {
            steps: steps?.iter().map(LabStep::from).collect(),
            ..Applied::default()
        })
    }

    /// Changes the network of the running lab as `edit` does, with [`Lab::apply`].
    ///
    /// # Errors
    /// [`ApplyError`], also what `edit` returns.
    pub fn edit(
        &self,
        edit: impl FnOnce(&mut Network) -> Result<(), String>,
        progress: impl FnMut(&LabStep),
    ) -> Result<Applied, ApplyError> {
        let lock = self.lock_running()?;
        let mut network = self.wanted_network()?;
        edit(&mut network).map_err(ApplyError::Refused)?;
        self.apply_locked(&lock, &network, progress)
    }

    /// The network that the lab is, or after an interrupted change is to be.
    fn wanted_network(&self) -> Result<Network, FileError> {
        match self.dir.read_next() {
            Err(error) if error.is_not_found() => self.dir.read_network(),
            next => next,
        }
    }

    /// The lab's lock, if it runs, and this process is not in it.
    pub(crate) fn lock_running(&self) -> Result<Lock, LabError> {
        let lock = self.root.lock(&self.name)?;
        let state = self.dir.read_state()?;
        if !state.is_running() {
            return Err(LabError::Failed(format!(
                "lab {:?} does not run: bring it up with `hawser lab up`",
                self.name
            )));
        }
        let own = namespace::own_net().map_err(FileError::at(Path::new("/proc/self/ns/net")))?;
        match own.is_some_and(|own| state.namespaces().contains(&own)) {
            true => Err(LabError::Failed(
                "this command runs inside the lab, which it is to change: run it outside"
                    .to_owned(),
            )),
            false => Ok(lock),
        }
    }

    /// Has the supervisor plan the change to a network, and returns the steps.
    fn plan_steps(&self, network: &Network) -> Result<Vec<Step>, ApplyError> {
        let before = self.dir.read_network()?;
        let has_authority = |isd_as| keys::has_authority(&self.dir, isd_as);
        let network = change::check(&before, network.clone(), has_authority);
        let network = network.map_err(ApplyError::Refused)?;
        let plan = Plan::of(&network).map_err(|error| ApplyError::Refused(error.to_string()))?;
        let socket = self.dir.longest_socket(&plan);
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_MAX {
            return Err(ApplyError::Refused(format!(
                "{} is {length} bytes long, and a Unix socket's path may have {SOCKET_PATH_MAX}: give the lab a shorter name",
                socket.display()
            )));
        }
        self.dir.write_next(&network)?;
        let steps = match protocol::call(&self.dir.socket(), &Request::Plan, PLAN_TIMEOUT)? {
            (Reply::Steps(steps), _) => steps,
            (other, _) => {
                return Err(LabError::Failed(format!("the supervisor answers {other:?}")).into());
            }
        };
        let known = before.ases.iter().map(|as_| as_.isd_as).collect();
        for step in &steps {
            if let Step::UpdateTrc(isd) = step {
                let checked = keys::check_trc(&self.dir, &known, *isd);
                checked.map_err(|error| ApplyError::Refused(error.to_string()))?;
            }
        }
        Ok(steps)
    }

    fn apply_locked(
        &self,
        _lock: &Lock,
        network: &Network,
        mut progress: impl FnMut(&LabStep),
    ) -> Result<Applied, ApplyError> {
        let before = self.dir.read_next();
        let steps = match self.plan_steps(network) {
            Ok(steps) => steps,
            // Nothing has changed: what was interrupted before is still wanted.
            Err(error) => {
                match before {
                    Ok(before) => self.dir.write_next(&before)?,
                    Err(_) => self.dir.remove_next()?,
                }
                return Err(error);
            }
        };
        let mut applied = Applied {
            steps: steps.iter().map(LabStep::from).collect(),
            ..Applied::default()
        };
        let mut waited = false;
        for (done, step) in steps.iter().enumerate() {
            if matches!(step, Step::Publish | Step::ReloadControl(_)) && !waited {
                // Hosts learn of links that work.
                applied.dead_links = self.wait_for_links(&steps)?;
                waited = true;
            }
            let shown = &applied.steps[done];
            progress(shown);
            match protocol::call(&self.dir.socket(), &Request::Step(*step), STEP_TIMEOUT) {
                Ok((Reply::Stepped { note }, _)) => applied.notes.extend(note),
                other => {
                    let reason = match other {
                        Err(error) => error,
                        Ok((other, _)) => {
                            LabError::Failed(format!("the supervisor answers {other:?}"))
                        }
                    };
                    return Err(ApplyError::Step {
                        step: shown.clone(),
                        reason,
                        done,
                        all: steps.len(),
                    });
                }
            }
        }
        self.dir.remove_next()?;
        Ok(applied)
    }

    /// Waits for the BFD sessions of the links that were added. Returns those that have none.
    fn wait_for_links(&self, steps: &[Step]) -> Result<Vec<String>, FileError> {
        let next = self.dir.read_next()?;
        let is_added = |id| steps.contains(&Step::AddLink(id));
        let added: Vec<_> = (next.links.iter())
            .filter(|link| is_added(LinkId::of(link)))
            .collect();
        let state = self.dir.read_state()?;
        let Ok(down) = bfd::wait(&self.dir, &state, added.iter().copied(), || {
            Ok::<_, Infallible>(())
        });
        let dead = added.iter().filter(|link| {
            let mut ends = [&link.a, &link.b].into_iter();
            ends.any(|end| down.contains(&(end.isd_as, end.id)))
        });
        Ok(dead
            .map(|link| format!("{} - {}", link.a, link.b))
            .collect())
    }
}
