//! The map at work: its file followed, its names resolved.

mod problems;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_manager::PathOptions;
use ipnet::IpNet;
use sha2::{Digest, Sha256};

pub(super) use self::problems::News;
use self::problems::Problems;
use crate::map::{Addresses, Entry, Follower, Local, Map, MapFile, Route};

/// Interval at which host names are resolved again.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(60);

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
    problems: Problems,
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

    /// A number that other targets do not have, by all likelihood. Addresses are made of it that the
    /// connections of a holder keep while its carriers come and go, perhaps of other versions: it is the
    /// first eight bytes of a SHA-256 hash, and must not change.
    pub(super) fn tag(&self) -> u64 {
        let hash = Sha256::new()
            .chain_update(b"hawser shim target\0")
            .chain_update(self.shim.to_string())
            .chain_update([0, self.paths.map_or(0, NonZeroU8::get)])
            .chain_update([u8::from(self.policy.is_some())])
            .chain_update(self.policy.as_deref().unwrap_or_default())
            .finalize();
        hash.iter()
            .take(8)
            .fold(0, |tag, byte| tag << 8 | u64::from(*byte))
    }
}

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The prefixes that are mapped now, and those of them that are mapped whatever the port; if
    /// they are others than before, or known for the first time.
    pub prefixes: Option<(Vec<IpNet>, Vec<IpNet>)>,
    /// Whether destinations may go elsewhere than before.
    pub is_new: bool,
    /// What is wrong with the map and was not before, and what no longer is.
    pub news: Vec<News>,
}

impl Changes {
    /// Logs the news.
    pub(super) fn report(&self) {
        for news in &self.news {
            match news {
                News::Error(text) => tracing::error!("{text}"),
                News::Warning(text) => tracing::warn!("{text}"),
                News::Recovery(text) => tracing::info!("{text}"),
            }
        }
    }
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
            problems: Problems::default(),
            is_known: false,
        }
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
                changes
                    .news
                    .extend(self.problems.on_unreadable(error.to_string()));
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
        let is_due = !names.is_empty() && self.resolved.elapsed() >= RESOLVE_INTERVAL;
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
        changes.news = self.problems.on_read(problems, file.path());
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
            destinations.refresh().news.len()
        };
        let looped = "[destinations]\n\"10.5.0.0/16\" = \"1-ff00:0:4\"\n";
        let other = "\"10.6.0.0/16\" = \"1-ff00:0:4\"\n";
        assert_eq!(problems(looped), 1);
        assert_eq!(problems(&format!("{looped}{other}")), 0);
        assert_eq!(problems("wrong"), 1);
        assert_eq!(problems("wrong"), 0);
        assert_eq!(problems(looped), 0);
        assert_eq!(problems(""), 0);
        assert_eq!(problems(looped), 1);
    }

    #[test]
    fn a_targets_number_is_the_same_in_every_version() {
        let target = |paths, policy: Option<&str>| Target {
            shim: "1-ff00:0:4,10.0.4.1:31800".parse().unwrap(),
            paths: NonZeroU8::new(paths),
            policy: policy.map(str::to_owned),
        };
        assert_eq!(target(0, None).tag(), 0xa394_8875_0908_8dc0);
        assert_eq!(target(4, Some("p.yml:eu")).tag(), 0xf276_fa73_4984_8389);
    }
}
