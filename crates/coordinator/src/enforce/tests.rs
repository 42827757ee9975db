//! Limits in force, with a model of a kernel.

use std::sync::Mutex;

use hawser_limit::{Direction, LinkCounters};
use tempfile::tempdir;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;
use crate::access::Actor;
use crate::coordinator::tests::{attachment_point, network};
use crate::link::{FailedLinks, LinkId, LinkUsage};

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is in force; each call is answered as told.
struct Kernel {
    in_force: watch::Sender<Vec<NamedLink<LinkId>>>,
    fails: Mutex<Option<String>>,
    failed: Mutex<FailedLinks>,
}

impl Kernel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            in_force: watch::Sender::default(),
            fails: Mutex::default(),
            failed: Mutex::default(),
        })
    }

    async fn until(&self, link: LinkId, egress: Option<u64>) {
        let mut in_force = self.in_force.subscribe();
        let is_it = |links: &Vec<NamedLink<LinkId>>| {
            links
                .iter()
                .any(|one| one.name == link && one.limits.egress == egress.map(Limit::new))
        };
        let waited = timeout(PATIENCE, in_force.wait_for(is_it)).await;
        if waited.is_err() {
            panic!("never {egress:?} for {link}: {:?}", *self.in_force.borrow());
        }
    }
}

impl Enforcer<LinkId> for Kernel {
    fn enforce(&self, links: &[NamedLink<LinkId>]) -> Result<FailedLinks, EnforceError> {
        if let Some(reason) = self.fails.lock().unwrap().clone() {
            return Err(EnforceError::new(reason));
        }
        let failed = self.failed.lock().unwrap().clone();
        let links = links.iter().filter(|one| !failed.contains_key(&one.name));
        self.in_force.send_replace(links.cloned().collect());
        Ok(failed)
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, EnforceError> {
        let links = self.in_force.borrow();
        let usage = links.iter().map(|one| LinkUsage {
            link: one.name,
            egress: Some(LinkCounters {
                bytes: 1,
                ..LinkCounters::default()
            }),
            ingress: None,
        });
        Ok(usage.collect())
    }

    fn reset(&self) -> Result<(), EnforceError> {
        unreachable!("limits outlast the service")
    }
}

fn set(coordinator: &Coordinator, link: LinkId, rate: u64) -> u64 {
    let wanted = [(Direction::Egress, Some(rate))];
    coordinator
        .set_limit(&Actor::program(), link, &wanted)
        .unwrap();
    coordinator
        .state()
        .host(attachment_point())
        .unwrap()
        .version
}

#[tokio::test]
async fn a_limit_that_is_stored_gets_into_force() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let link = network(&coordinator);
    let kernel = Kernel::new();
    let enforcing = enforce_locally(coordinator.clone(), attachment_point(), kernel.clone() as _);
    let task = tokio::spawn(enforcing);
    kernel.until(link, Some(10_000_000)).await;
    let version = set(&coordinator, link, 2_000_000);
    assert_eq!(
        coordinator.deployed(attachment_point(), version).await,
        Ok(())
    );
    assert_eq!(
        kernel.in_force.borrow()[0].limits.egress,
        Some(Limit::new(2_000_000))
    );

    *kernel.fails.lock().unwrap() = Some("no permission".into());
    let version = set(&coordinator, link, 3_000_000);
    let failed = coordinator.deployed(attachment_point(), version).await;
    assert_eq!(failed, Err("no permission".to_owned()));
    *kernel.fails.lock().unwrap() = None;
    kernel.until(link, Some(3_000_000)).await;
    task.abort();
}

#[tokio::test]
async fn a_crash_between_stored_and_applied_loses_nothing() {
    let folder = tempdir().unwrap();
    let kernel = Kernel::new();
    let (link, version) = {
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let link = network(&coordinator);
        let before = coordinator
            .state()
            .host(attachment_point())
            .unwrap()
            .version;
        coordinator
            .report_deployed(attachment_point(), before)
            .unwrap();
        // Stored, and nothing is there to apply it.
        (link, set(&coordinator, link, 2_000_000))
    };
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let host = coordinator
        .state()
        .host(attachment_point())
        .unwrap()
        .clone();
    assert!(
        host.version == version && host.deployed < Some(version),
        "{host:?}"
    );
    let enforcing = enforce_locally(coordinator.clone(), attachment_point(), kernel.clone() as _);
    let task = tokio::spawn(enforcing);
    kernel.until(link, Some(2_000_000)).await;
    assert_eq!(
        coordinator.deployed(attachment_point(), version).await,
        Ok(())
    );
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_link_that_fails_keeps_no_other_from_its_limit() {
    let folder = tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let link = network(&coordinator);
    let kernel = Kernel::new();
    let reason = "no device leads there".to_owned();
    kernel.failed.lock().unwrap().insert(link, reason.clone());
    let enforcing = enforce_locally(coordinator.clone(), attachment_point(), kernel.clone() as _);
    let task = tokio::spawn(enforcing);
    let version = set(&coordinator, link, 2_000_000);
    let deployed = coordinator.deployed(attachment_point(), version).await;
    assert_eq!(deployed, Ok(()));
    let deployment = coordinator.deployment(attachment_point());
    assert_eq!(deployment.error_of(link), Some(reason.as_str()));
    assert_eq!(deployment.error_of(LinkId(link.0 + 1)), None);
    assert_eq!(deployment.error(), Some(format!("link {link}: {reason}")));
    // It is tried again without a change, and reported when it works.
    kernel.failed.lock().unwrap().clear();
    kernel.until(link, Some(2_000_000)).await;
    let mut changed = coordinator.subscribe();
    while let Some(error) = coordinator.deployment(attachment_point()).error() {
        let waited = timeout(PATIENCE, changed.changed()).await;
        waited
            .unwrap_or_else(|_| panic!("it stays: {error}"))
            .unwrap();
    }
    task.abort();
}
