//! Ending of a lab's processes, and removal of its folder.

use std::io;

use crate::dir::LabDir;
use crate::reap::{self, Certainty};
use crate::state::LabState;

/// Clears up after a failed start if the command that would do so has ended.
pub(super) fn clear_up(dir: &LabDir) {
    let state = dir.read_state().ok();
    let ended = state.map(|state| end_services(&state, Certainty::Cookie));
    remove(dir, ended.unwrap_or(Ok(())));
}

/// Ends all processes of the lab except this one.
pub(super) fn end_services(state: &LabState, certainty: Certainty) -> io::Result<()> {
    reap::clear(&state.namespaces(), certainty)?;
    reap::end(&reap::open(state.services())?)
}

/// Removes the lab's folder. Services must have ended before: files that they write meanwhile would
/// remain.
pub(super) fn remove(dir: &LabDir, ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::error!("cannot end all processes of the lab: {error}");
    }
    if let Err(error) = std::fs::remove_dir_all(dir.path()) {
        tracing::error!("cannot remove {}: {error}", dir.path().display());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use hawser_kernel::namespace::{NetNs, is_privileged};
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;
    use crate::state::Settings;

    #[test]
    fn a_writing_service_does_not_prevent_the_removal() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path().join("lab"));
        let as_dir = dir.path().join("as");
        std::fs::create_dir_all(&as_dir).unwrap();
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let mut state = LabState::new(&plan, &Settings::default(), false).unwrap();
        let ns = NetNs::create().unwrap();
        state.ases[0].net_ns = Some(ns.id().unwrap());
        dir.write_state(&state).unwrap();
        let writes = "n=0; while mkdir -p \"$0\" && : > \"$0/$((n += 1))\"; do :; done";
        let mut service = ns
            .run(|| Command::new("sh").args(["-c", writes]).arg(&as_dir).spawn())
            .flatten()
            .unwrap();
        while std::fs::read_dir(&as_dir).unwrap().next().is_none() {
            assert!(service.try_wait().unwrap().is_none(), "nothing writes");
            std::thread::yield_now();
        }

        clear_up(&dir);
        let ended = service.try_wait().unwrap().is_some();
        service.kill().unwrap();
        service.wait().unwrap();
        assert!(ended, "the service still runs");
        assert!(!dir.path().exists());
    }
}
