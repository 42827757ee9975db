//! The report of a lab's supervisor to the command that started it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The environment variable with the program that runs the services: that of the supervisor, unless
/// it was started through a wrapper.
pub(crate) const PROGRAM: &str = "HAWSER_PROGRAM";

/// Number of bytes at the end of a log that are shown when its process fails.
const TAIL: u64 = 2000;

/// The report, as one JSON line on standard output: the links whose routers have no BFD session
/// with each other, as `1-ff00:0:110#1 - 1-ff00:0:111#1`; or the reason why the lab did not come
/// up.
pub(crate) type Report = Result<Vec<String>, StartError>;

/// What [`Lab::up_with`] is doing, if it takes long.
///
/// [`Lab::up_with`]: crate::Lab::up_with
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum UpProgress {
    /// Writing the configurations, keys and certificates of all ASes.
    Writing,
    /// Creating the namespaces and the links.
    Building,
    /// Starting the routers and control services.
    Starting,
    /// All are started: waiting until they answer, and the links are up.
    Waiting,
}

/// A line on a supervisor's standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// What it does next.
    Progress(UpProgress),
    /// The last one.
    Report(Report),
}

/// The reason why a lab's supervisor could not start the lab.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system does not allow user namespaces.
    #[error(
        "user namespaces are not allowed here ({0}): run as root, or allow them (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu; give a container CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    NoUserNamespace(String),
    /// A router or control service ended, or did not answer.
    #[error("the {service} did not come up: {reason}{log}")]
    NotReady {
        /// The service, for example `router of 1-ff00:0:110`.
        service: String,
        /// How it ended, or why a request to it failed.
        reason: String,
        /// The last lines of its log, with an introductory text.
        log: String,
    },
    /// Namespaces, links or processes could not be created.
    #[error("the lab did not come up: {0}")]
    Failed(String),
}

/// The last lines of a log for the end of an error text; empty for an empty log.
pub(crate) fn log_end(log: &Path) -> String {
    let text = tail(log).unwrap_or_else(|error| error.to_string());
    match text.as_str() {
        "" => text,
        text => format!("; its log ends:\n  {}", text.replace('\n', "\n  ")),
    }
}

/// The last complete lines of a file.
fn tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let start = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line may be incomplete unless it is the first of the file.
    let whole = match start {
        0 => &text,
        _ => text.split_once('\n').map_or(&*text, |(_, rest)| rest),
    };
    Ok(whole.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_has_complete_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(tail(&log).unwrap(), "one\ntwo");
        let long: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&log, long).unwrap();
        let end = tail(&log).unwrap();
        assert!(
            end.starts_with("line ") && end.ends_with("line 999"),
            "{end}"
        );
        assert!(end.len() < TAIL as usize);
    }
}
