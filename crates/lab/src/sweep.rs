//! Removal of labs that killed commands have left behind.

use crate::Lab;
use crate::dir::LabDir;
use crate::down;
use crate::error::DownError;
use crate::place::{PlaceError, Root};

impl Lab {
    /// Removes the remains of this user's labs whose owner ([`Options::owner`]) and supervisor have
    /// ended, of those whose `up` was killed before it had started the supervisor, and of those
    /// whose removal was interrupted. Does not change labs that run, come up or go down, or labs
    /// without an owner.
    ///
    /// # Errors
    /// When the folder of all labs cannot be read.
    ///
    /// [`Options::owner`]: crate::Options::owner
    pub fn sweep() -> Result<(), PlaceError> {
        sweep(&Root::find())
    }
}

fn sweep(root: &Root) -> Result<(), PlaceError> {
    for name in root.traces()? {
        // The lock is held while a lab comes up or goes down, and by commands that change it.
        // Dropping it removes the lock file of a killed command.
        let Some(_lock) = root.try_lock(&name)? else {
            continue;
        };
        let dir = LabDir::new(root.lab(&name)?);
        match is_abandoned(&dir).then(|| down::clear(&dir)) {
            // A program inside the lab cannot remove it.
            None | Some(Ok(()) | Err(DownError::Inside)) => {}
            Some(Err(error)) => tracing::warn!("lab {name}: {error}"),
        }
    }
    Ok(())
}

/// Whether no process is left that will take the lab down. The caller must hold its lock.
fn is_abandoned(dir: &LabDir) -> bool {
    let state = match dir.read_state() {
        Ok(state) => state,
        // Either `up` was killed before it had started the supervisor, which first writes the state
        // and holds the lock while it starts; or the removal of the folder was interrupted.
        Err(e) => return e.is_not_found(),
    };
    if state.is_running() {
        return false;
    }
    let owner = match dir.read_settings() {
        Ok(settings) => settings.owner,
        // The settings are written before the state, so the removal of the folder was interrupted.
        Err(e) => return e.is_not_found(),
    };
    let of_this_boot = state.is_of_this_boot().unwrap_or(true);
    owner.is_some_and(|owner| !(of_this_boot && owner.is_alive()))
}

#[cfg(test)]
mod tests {
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;
    use crate::process::ProcessId;
    use crate::state::{LabState, Settings};

    fn gone() -> ProcessId {
        let own = ProcessId::own().unwrap();
        ProcessId {
            started: own.started + 1,
            ..own
        }
    }

    /// A lab's folder, with a supervisor and an owner.
    fn lab(root: &Root, name: &str, supervisor: ProcessId, owner: Option<ProcessId>) {
        let dir = LabDir::new(root.lab(name).unwrap());
        std::fs::create_dir(dir.path()).unwrap();
        let settings = Settings {
            owner,
            ..Settings::default()
        };
        dir.write_settings(&settings).unwrap();
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let mut state = LabState::new(&plan, &settings, false).unwrap();
        state.supervisor = supervisor;
        dir.write_state(&state).unwrap();
    }

    #[test]
    fn only_abandoned_labs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path().join("hawser/lab"));
        drop(root.lock("first").unwrap());
        let (own, gone) = (ProcessId::own().unwrap(), gone());
        lab(&root, "runs", own, Some(gone));
        lab(&root, "owned", gone, Some(own));
        lab(&root, "kept", gone, None);
        lab(&root, "orphan", gone, Some(gone));
        lab(&root, "busy", gone, Some(gone));
        std::fs::create_dir(root.lab("half").unwrap()).unwrap();
        lab(&root, "half-removed", gone, None);
        std::fs::remove_file(root.lab("half-removed").unwrap().join("settings.json")).unwrap();
        std::fs::create_dir(root.lab("starting").unwrap()).unwrap();
        let locks = ["busy", "starting"].map(|name| root.lock(name).unwrap());
        std::fs::write(root.lab("x").unwrap().with_file_name(".stale.lock"), "").unwrap();

        sweep(&root).unwrap();
        let left = ["busy", "kept", "owned", "runs", "starting"];
        assert_eq!(root.names().unwrap(), left);
        assert_eq!(root.traces().unwrap(), left);
        drop(locks);
        sweep(&root).unwrap();
        assert_eq!(root.traces().unwrap(), ["kept", "owned", "runs"]);
    }

    #[test]
    fn an_inherited_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path().join("hawser/lab"));
        let lock = root.lock("x").unwrap();
        let share = lock.share().unwrap();
        lock.leave();
        assert!(root.try_lock("x").unwrap().is_none());
        drop(share);
        assert!(root.try_lock("x").unwrap().is_some());
    }
}
