//! The configuration's file, followed while the service runs.

use std::path::PathBuf;
use std::time::Duration;

use hawser_bulk::Clients;
use hawser_keys::{Allowed, Known};
use tokio::time::MissedTickBehavior;

use crate::config::{Config, ConfigError};
use crate::event::ServiceEvent;
use crate::service::Service;

/// Time between two looks at the file: what is revoked there has ended well within a second.
const INTERVAL: Duration = Duration::from_millis(250);

/// Reads a configuration again when its file has changed.
///
/// The text itself is compared, because the times of files do not show every change. A new one counts
/// once two looks in a row have found it: files are often written in place.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    path: PathBuf,
    /// What counts now, and what the last look found; `None` where it could not be read.
    current: Option<String>,
    found: Option<String>,
}

impl Follower {
    /// Follows the file that `config` was read from.
    pub fn new(config: &Config) -> Self {
        Self {
            path: config.path.clone(),
            current: config.text.clone(),
            found: config.text.clone(),
        }
    }

    /// Looks at the file, and blocks meanwhile. Returns the configuration after a change.
    ///
    /// # Errors
    /// When it cannot be used: once for each change. The former one should stay in force.
    pub fn look(&mut self) -> Option<Result<Config, ConfigError>> {
        let (text, error) = match std::fs::read_to_string(&self.path) {
            Ok(text) => (Some(text), None),
            Err(source) => (None, Some(source)),
        };
        let is_settled = text == self.found;
        self.found = text;
        if !is_settled || self.found == self.current {
            return None;
        }
        self.current = self.found.clone();
        let path = &self.path;
        Some(match (&self.current, error) {
            (Some(text), _) => Config::parse(path, text),
            (None, Some(source)) => Err(ConfigError::Read {
                path: path.clone(),
                source,
            }),
            // Without a text there is an error.
            (None, None) => return None,
        })
    }
}

/// Takes changes of the configuration's file in, as far as they are followed: users and limits of the
/// queue, the keys of servers, and the keys that may send. Never ends.
pub(crate) async fn follow(
    mut follower: Follower,
    service: Service,
    known: Known,
    clients: Option<Clients>,
) {
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let looked = tokio::task::spawn_blocking(move || (follower.look(), follower)).await;
        let changed = match looked {
            Ok((changed, looked)) => {
                follower = looked;
                changed
            }
            // It cannot panic.
            Err(_) => return service.trouble("the configuration is no longer followed"),
        };
        let config = match changed {
            None => continue,
            Some(Ok(config)) => config,
            Some(Err(error)) => {
                let kept = "what was read before stays in force";
                service.trouble(format_args!("{error}: {kept}"));
                continue;
            }
        };
        known.set_keys(config.transfers.server_keys.iter().copied());
        if let (Some(clients), Some(receive)) = (&clients, &config.receive) {
            match receive.allowed() {
                Ok(allowed) => clients.set(allowed),
                Err(error) => {
                    // The file may be there later: the keys that are not in it count at once.
                    clients.set(Allowed::new(receive.allow.iter().copied()));
                    service.trouble(error);
                }
            }
        }
        service.configure(config).await;
        service.report(ServiceEvent::Configured);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_change_is_read_once_and_only_when_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.toml");
        let text = |running: u8| format!("[transfers]\nrunning = {running}\n");
        fs::write(&path, text(1)).unwrap();
        let mut follower = Follower::new(&Config::read(&path).unwrap());
        assert!(follower.look().is_none());
        // Of the same length, and within the same tick of the clock.
        fs::write(&path, text(2)).unwrap();
        assert!(follower.look().is_none());
        assert_eq!(follower.look().unwrap().unwrap().transfers.running, 2);
        assert!(follower.look().is_none());
        // Empty for a moment.
        fs::write(&path, "").unwrap();
        assert!(follower.look().is_none());
        fs::write(&path, text(2)).unwrap();
        assert!(follower.look().is_none() && follower.look().is_none());
        fs::write(&path, "state = 5\n").unwrap();
        assert!(follower.look().is_none());
        let error = follower.look().unwrap().unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        assert!(follower.look().is_none());
        fs::remove_file(&path).unwrap();
        assert!(follower.look().is_none());
        let error = follower.look().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("cannot read"), "{error}");
        assert!(follower.look().is_none());
        fs::write(&path, text(3)).unwrap();
        assert!(follower.look().is_none());
        assert_eq!(follower.look().unwrap().unwrap().transfers.running, 3);
    }

    #[test]
    fn a_file_that_is_made_later_is_read_and_one_that_is_not_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.toml");
        let mut follower = Follower::new(&Config::read_if_any(&path).unwrap());
        assert!(follower.look().is_none() && follower.look().is_none());
        fs::write(&path, "transfers.running = 7").unwrap();
        assert!(follower.look().is_none());
        assert_eq!(follower.look().unwrap().unwrap().transfers.running, 7);
    }
}
