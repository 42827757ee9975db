//! The map at work: its file followed, its names resolved.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_manager::PathOptions;
use ipnet::IpNet;

use crate::map::{Addresses, Entry, Follower, Local, Map, MapFile, Route};

/// Interval at which host names are resolved again.
const RESOLVED: Duration = Duration::from_secs(60);

/// Where the connections of programs go.
#[derive(Debug, Clone)]
pub struct Destinations {
    follower: Follower,
    file: Option<MapFile>,
    /// Entries that are in no file, and are before those that are.
    given: Vec<Entry>,
    addresses: Addresses,
    local: Local,
    map: Map,
    resolved: Instant,
    /// What was wrong with the file, a line each.
    problems: Vec<String>,
    /// Whether the file was read.
    is_known: bool,
}

/// What connections to one destination have in common: they share a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// The other host's shim.
    pub shim: ScionAddr,
    paths: Option<NonZeroU8>,
    policy: Option<String>,
}

impl Target {
    fn of(route: Route<'_>) -> Self {
        Self {
            shim: route.shim,
            paths: route.entry.paths,
            policy: route.entry.policy.clone(),
        }
    }

    /// A number that other targets do not have, by all likelihood.
    pub(super) fn tag(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        // A hash of the address itself is of its parts, which may change.
        (self.shim.to_string(), self.paths, &self.policy).hash(&mut hasher);
        hasher.finish()
    }
}

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The prefixes that are mapped now, and those of them that are mapped whatever the port; if
    /// they are others than before, or known for the first time.
    pub prefixes: Option<(Vec<IpNet>, Vec<IpNet>)>,
    /// What is wrong with the file and was not before, a line each.
    /// Whether destinations may go elsewhere than before.
    pub is_new: bool,
    /// What is wrong with the file, a line each.
    pub problems: Vec<String>,
}

impl Destinations {
    /// Those of the file that `follower` reads, on the host `local`.
    pub fn new(follower: Follower, local: Local) -> Self {
        Self {
            follower,
            file: None,
            given: Vec::new(),
            addresses: Addresses::default(),
            local,
            map: Map::default(),
            resolved: Instant::now(),
            problems: Vec::new(),
            is_known: false,
        }
    }

    /// Takes in what is wrong with the file now. Returns what was not before.
    fn set_problems(&mut self, now: Vec<String>) -> Vec<String> {
        let before = std::mem::replace(&mut self.problems, now);
        let all = self.problems.iter();
        let new = all.filter(|problem| !before.contains(problem));
        new.cloned().collect()
    }

    /// Adds entries that are in no file. If the file has one of the same destination, that does not
    /// count.
    #[must_use]
    pub fn with_entries(mut self, entries: Vec<Entry>) -> Self {
        self.given = entries;
        self
    }

    /// Reads the file if it has changed, and resolves names if that is due. Blocks meanwhile.
    pub(super) fn refresh(&mut self) -> Changes {
        let mut changes = Changes::default();
        let read = self.follower.poll();
        let is_read = read.is_some();
        match read {
            Some(Ok(file)) => self.file = Some(file),
            // What was read before stays in force.
            Some(Err(error)) => {
                changes.problems = self.set_problems(vec![error.to_string()]);
                return changes;
            }
            None => {}
        }
        let is_first = is_read && !self.is_known;
        self.is_known |= is_read;
        let Some(file) = &self.file else {
            return changes;
        };
        let names = file.names();
        let is_due = !names.is_empty() && self.resolved.elapsed() >= RESOLVED;
        if !is_read && !is_due {
            return changes;
        }
        let addresses = self.addresses.resolve(&names);
        self.resolved = Instant::now();
        if !is_read && addresses == self.addresses {
            return changes;
        }
        self.addresses = addresses;
        let before = (self.map.captured(), self.map.routed());
        let entries = [&self.given, file.entries()].concat();
        let (map, problems) = Map::new(&entries, &self.addresses, &self.local);
        let path = file.path().display();
        let problems = problems.iter().map(|problem| match problem.line {
            0 => format!("`{}` {}", problem.destination, problem.fault),
            _ => format!("{path}: {problem}"),
        });
        changes.problems = self.set_problems(problems.collect());
        self.map = map;
        changes.is_new = true;
        let now = (self.map.captured(), self.map.routed());
        changes.prefixes = (is_first || now != before).then_some(now);
        changes
    }

    /// Where connections to `destination` go; `None` if not over SCION.
    pub(super) fn find(&self, destination: SocketAddr) -> Option<Target> {
        self.map.lookup(destination).map(Target::of)
    }

    /// Where packets to `destination` go that are not TCP; `None` if not over SCION.
    pub(super) fn find_host(&self, destination: IpAddr) -> Option<Target> {
        self.map.lookup_host(destination).map(Target::of)
    }

    /// How paths to `target` are chosen, where its entry says nothing as `options` say.
    ///
    /// # Errors
    /// When its policy cannot be read.
    pub(super) fn options(
        &self,
        target: &Target,
        options: &PathOptions,
    ) -> Result<PathOptions, String> {
        let mut options = options.clone();
        if let Some(paths) = target.paths {
            options.subflows = paths.get().into();
        }
        if let (Some(policy), Some(file)) = (&target.policy, &self.file) {
            let read = file.policy_named(policy);
            options.policy = Some(read.map_err(|error| error.to_string())?);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::map::Role;

    #[test]
    fn problems_are_reported_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.toml");
        let local = Local::new("1-ff00:0:1".parse().unwrap());
        let local = local.with_address("10.5.0.1".parse().unwrap(), Role::Host);
        let mut destinations = Destinations::new(Follower::new(&path), local);
        let mut problems = |text: &str| {
            // Another file of the same name, as commands write it.
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(&new, &path).unwrap();
            destinations.refresh().problems.len()
        };
        let looped = "[destinations]\n\"10.5.0.0/16\" = \"1-ff00:0:4\"\n";
        let other = "\"10.6.0.0/16\" = \"1-ff00:0:4\"\n";
        assert_eq!(problems(looped), 1);
        assert_eq!(problems(&format!("{looped}{other}")), 0);
        assert_eq!(problems("wrong"), 1);
        assert_eq!(problems("wrong"), 0);
        assert_eq!(problems(looped), 1);
        assert_eq!(problems(""), 0);
        assert_eq!(problems(looped), 1);
    }
}
