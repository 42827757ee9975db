//! Whether an AS that runs here does its work: what is known inside the node, and what its border routers
//! say of their links.

pub(crate) mod socket;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_router::live;
use hawser_topology::{AsTopology, IsdAsn};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::event::ServiceName;

/// Tells [`Health`] what the node knows.
#[derive(Debug)]
pub struct HealthReporter(watch::Sender<Option<Facts>>);

/// Answers whether the node does its work. Clones answer the same.
#[derive(Debug, Clone)]
pub struct Health(watch::Receiver<Option<Facts>>);

/// A reporter for [`Options::health`](crate::Options::health), and what it reports to.
#[must_use]
pub fn health() -> (HealthReporter, Health) {
    let (reporter, health) = watch::channel(None);
    (HealthReporter(reporter), Health(health))
}

/// What the node knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The version of the configuration.
    pub version: u64,
    /// The services, and whether each is ready; none while the coordinator has no configuration.
    pub services: Vec<(ServiceName, bool)>,
    /// Why the limits are not in force; `None` if they are.
    pub limits_error: Option<String>,
    /// The links whose limits alone are not, each with the reason.
    pub failed_limits: BTreeMap<String, String>,
    /// The live sockets of the border routers.
    pub routers: Vec<PathBuf>,
    /// The neighbours by interface.
    pub links: BTreeMap<u16, IsdAsn>,
    /// The file of the segments, or the folder of its parts.
    pub segments: PathBuf,
}

/// Whether an AS does its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReport {
    /// Whether all services run, the limits are in force, all links are up, and there are segments.
    pub ready: bool,
    /// The version of the configuration; `None` before the services are started.
    pub version: Option<u64>,
    /// What is missing; nothing if it is ready.
    pub reasons: Vec<String>,
}

impl HealthReporter {
    /// Replaces what is known.
    pub(crate) fn report(&self, facts: Facts) {
        self.0.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&facts);
            if is_new {
                *known = Some(facts);
            }
            is_new
        });
    }
}

impl Health {
    /// Asks the border routers for their links, and says whether the AS does its work. Takes up to 5 s for
    /// each router that does not answer.
    pub async fn read(&self) -> HealthReport {
        let facts = self.0.borrow().clone();
        let Some(facts) = facts else {
            return HealthReport {
                ready: false,
                version: None,
                reasons: vec!["the services have not been started yet".to_owned()],
            };
        };
        let read = tokio::task::spawn_blocking(move || {
            let up = facts.routers.iter().map(|socket| links(socket)).collect();
            let has_segments = has_segments(&facts.segments);
            judge(&facts, up, has_segments)
        });
        read.await.unwrap_or_else(|panic| HealthReport {
            ready: false,
            version: None,
            reasons: vec![panic.to_string()],
        })
    }
}

/// Whether each link of the border router at `socket` is up, by interface, as far as BFD watches it.
fn links(socket: &Path) -> Result<BTreeMap<String, bool>, String> {
    match live::call(socket, &live::Request::Counters) {
        Ok(live::Reply::Counters(counters)) => Ok(counters.bfd),
        Ok(live::Reply::Error { message }) => Err(message),
        Ok(_) => Err("the border router sent another answer".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn has_segments(path: &Path) -> bool {
    let is_file = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0);
    match path.read_dir() {
        Ok(mut parts) => parts.any(|part| part.is_ok_and(|part| is_file(&part.path()))),
        Err(_) => is_file(path),
    }
}

/// What is missing. `up` has an answer of each router.
fn judge(
    facts: &Facts,
    up: Vec<Result<BTreeMap<String, bool>, String>>,
    has_segments: bool,
) -> HealthReport {
    let mut reasons = Vec::new();
    if facts.services.is_empty() {
        reasons.push("the coordinator has no configuration for this AS now".to_owned());
    }
    for (service, is_ready) in &facts.services {
        if !is_ready {
            reasons.push(format!("the {service} is not ready"));
        }
    }
    if let Some(error) = &facts.limits_error {
        reasons.push(format!("the limits are not in force: {error}"));
    }
    for (link, error) in &facts.failed_limits {
        reasons.push(format!(
            "the limits of link {link} are not in force: {error}"
        ));
    }
    for answer in up {
        match answer {
            Ok(links) => {
                let down = links.into_iter().filter(|(_, is_up)| !is_up);
                reasons.extend(down.map(|(id, _)| {
                    let neighbour = id.parse().ok().and_then(|id: u16| facts.links.get(&id));
                    match neighbour {
                        Some(neighbour) => format!("link {id} to {neighbour} is down"),
                        None => format!("the border router {id} is not reached"),
                    }
                }));
            }
            Err(error) => reasons.push(error),
        }
    }
    if !has_segments && !facts.links.is_empty() {
        let path = facts.segments.display();
        reasons.push(format!("{path} has no segments, so there are no paths"));
    }
    HealthReport {
        ready: reasons.is_empty(),
        version: Some(facts.version),
        reasons,
    }
}

/// The neighbours of an AS by interface.
pub(crate) fn neighbours(topology: &AsTopology) -> BTreeMap<u16, IsdAsn> {
    let routers = topology.border_routers.values();
    let interfaces = routers.flat_map(|router| &router.interfaces);
    interfaces
        .map(|(&id, interface)| (id, interface.isd_as))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn facts() -> Facts {
        Facts {
            version: 3,
            services: vec![
                (ServiceName::Router("br1".to_owned()), true),
                (ServiceName::Control, true),
            ],
            limits_error: None,
            failed_limits: BTreeMap::new(),
            routers: Vec::new(),
            links: [(1, "1-ff00:0:110".parse().unwrap())].into(),
            segments: "/segments".into(),
        }
    }

    fn up(links: &[(&str, bool)]) -> Vec<Result<BTreeMap<String, bool>, String>> {
        let links = links.iter().map(|(id, is_up)| ((*id).to_owned(), *is_up));
        vec![Ok(links.collect())]
    }

    #[test]
    fn an_as_is_ready_when_nothing_is_missing() {
        let all = up(&[("1", true), ("br2", true)]);
        let report = judge(&facts(), all, true);
        assert!(report.ready && report.reasons.is_empty(), "{report:?}");
        assert_eq!(report.version, Some(3));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |facts: &Facts, up, has_segments| -> String {
            let report = judge(facts, up, has_segments);
            assert!(!report.ready);
            let [reason] = &report.reasons[..] else {
                panic!("{report:?}");
            };
            reason.clone()
        };
        let fine = || up(&[("1", true)]);
        let mut stopped = facts();
        stopped.services[0].1 = false;
        assert_eq!(
            missing(&stopped, fine(), true),
            "the border router br1 is not ready"
        );
        let unlimited = Facts {
            limits_error: Some("no right".to_owned()),
            ..facts()
        };
        assert!(missing(&unlimited, fine(), true).contains("limits are not in force: no right"));
        let failed = Facts {
            failed_limits: [("5".to_owned(), "no route".to_owned())].into(),
            ..facts()
        };
        assert!(missing(&failed, fine(), true).contains("link 5 are not in force: no route"));
        let nothing = Facts {
            services: Vec::new(),
            ..facts()
        };
        assert!(missing(&nothing, fine(), true).contains("no configuration"));
        let down = up(&[("1", false)]);
        assert_eq!(
            missing(&facts(), down, true),
            "link 1 to 1-ff00:0:110 is down"
        );
        let other = up(&[("1", true), ("br2", false)]);
        assert!(missing(&facts(), other, true).contains("br2"));
        let silent = vec![Err("no router listens".to_owned())];
        assert_eq!(missing(&facts(), silent, true), "no router listens");
        assert!(missing(&facts(), fine(), false).contains("/segments"));
        // An AS alone needs none.
        let alone = Facts {
            links: BTreeMap::new(),
            ..facts()
        };
        assert!(judge(&alone, up(&[]), false).ready);
    }

    #[test]
    fn segments_are_a_file_or_files_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("parts");
        assert!(!has_segments(&parts));
        std::fs::create_dir(&parts).unwrap();
        assert!(!has_segments(&parts));
        let part = parts.join("000");
        std::fs::write(&part, "").unwrap();
        assert!(!has_segments(&parts) && !has_segments(&part));
        std::fs::write(&part, "x").unwrap();
        assert!(has_segments(&parts) && has_segments(&part));
    }

    #[tokio::test]
    async fn nothing_is_ready_before_the_node_reports() {
        let (reporter, health) = health();
        let report = health.read().await;
        assert!(!report.ready && report.version.is_none());
        // Without a router there is no link that could be down.
        reporter.report(Facts {
            links: BTreeMap::new(),
            ..facts()
        });
        assert!(health.read().await.ready);
    }
}
