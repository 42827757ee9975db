//! How large packets the links of this AS take, as the routes of this machine say: reported to the coordinator,
//! which has the segments announce it.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_control::link_mtus;
use hawser_topology::AsTopology;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::follow::{post, wait_after};
use crate::http::Client;

/// Time between two looks at the routes.
const CHECK: Duration = Duration::from_secs(5);
/// Waits after reports that fail.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

#[derive(Serialize)]
struct Report {
    links: Vec<LinkMtu>,
}

#[derive(Serialize)]
struct LinkMtu {
    interface: u16,
    mtu: u16,
}

impl Report {
    fn new(mtus: &BTreeMap<u16, u16>) -> Self {
        let links = mtus
            .iter()
            .map(|(&interface, &mtu)| LinkMtu { interface, mtu });
        Self {
            links: links.collect(),
        }
    }
}

/// Reports what carries the links in `topology`, when it is another.
pub(crate) struct MtuReporter {
    pub client: Client,
    /// The path of this machine in the coordinator's API.
    pub api: String,
    pub topology: watch::Receiver<AsTopology>,
}

impl MtuReporter {
    /// Reports until the node ends.
    pub async fn report(mut self) {
        let path = format!("{}/mtus", self.api);
        let mut ticks = interval(CHECK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut reported, mut backoff) = (BTreeMap::new(), BACKOFF);
        let mut again = Instant::now();
        loop {
            let now = ticks.tick().await;
            let topology = self.topology.borrow().clone();
            let found = link_mtus(&topology);
            if found == reported || now < again {
                continue;
            }
            match post(&mut self.client, &path, &Report::new(&found)).await {
                Ok(()) => (reported, backoff) = (found, BACKOFF),
                Err(error) => {
                    tracing::debug!("the MTUs of links are not reported: {error}");
                    again = Instant::now() + wait_after(&error, &mut backoff);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_topology::{Bfd, BorderRouter, Interface, LinkAddresses, LinkTo};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::run::testing::{FakeCoordinator, TOKEN};

    /// An AS with a link to this machine.
    fn topology(interface: u16) -> AsTopology {
        let link = Interface {
            underlay: LinkAddresses {
                local: "0.0.0.0:50000".parse().unwrap(),
                remote: "127.0.0.1:50001".parse().unwrap(),
            },
            isd_as: "1-ff00:0:111".parse().unwrap(),
            remote_id: 1,
            link_to: LinkTo::Child,
            mtu: 1472,
            bfd: Bfd::default(),
        };
        let router = BorderRouter {
            internal_addr: "127.0.0.1:30042".parse().unwrap(),
            interfaces: [(interface, link)].into(),
        };
        AsTopology {
            isd_as: "1-ff00:0:110".parse().unwrap(),
            mtu: 1472,
            core: true,
            dispatched_ports: (31000, 32767),
            control_service: [].into(),
            discovery_service: [].into(),
            border_routers: [("br1".to_owned(), router)].into(),
        }
    }

    #[tokio::test]
    async fn what_routes_take_is_reported_when_it_is_another() {
        let coordinator = FakeCoordinator::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        coordinator.serve(listener);
        let sender = watch::Sender::new(topology(1));
        let reporter = MtuReporter {
            client: Client::new(&url, TOKEN, None).unwrap(),
            api: "/api/host/h1".to_owned(),
            topology: sender.subscribe(),
        };
        let task = tokio::spawn(reporter.report());
        let until = async |count: u64| {
            let mut answered = coordinator.answered.subscribe();
            let waited = timeout(
                Duration::from_secs(300),
                answered.wait_for(|answers| *answers >= count),
            );
            assert!(waited.await.is_ok(), "{count} reports never came");
        };
        until(1).await;
        sender.send_replace(topology(7));
        until(2).await;
        task.abort();
        let reports = std::mem::take(&mut coordinator.known.lock().unwrap().mtus);
        let interfaces: Vec<_> = reports
            .iter()
            .map(|report| report["links"][0]["interface"].as_u64())
            .collect();
        assert_eq!(interfaces, [Some(1), Some(7)], "{reports:?}");
        let mtu = reports[0]["links"][0]["mtu"].as_u64().unwrap();
        assert!(mtu > 1500, "{mtu}");
    }
}
