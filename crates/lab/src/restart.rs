//! Restarting services of an AS.

use std::time::Duration;

use hawser_topology::IsdAsn;

use crate::Lab;
use crate::error::LabError;
use crate::protocol::{self, Request};
use crate::state::{AsState, Service};

/// Longest wait for the supervisor to end a service, which may take two seconds, and for the new
/// one to be ready.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A choice among the services of an AS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartOf {
    /// All services that the lab runs.
    All,
    /// All border routers.
    Routers,
    /// The border router with this name in `topology.json`.
    Router(String),
    /// The control service and daemon.
    Control,
    /// What gives plain IP the delay, jitter and loss of links.
    Emulator,
}

impl Lab {
    /// Restarts services of an AS one by one. Returns their names when all are ready.
    ///
    /// # Errors
    /// When there is no such service, the user runs it, or it did not come up.
    pub fn restart(&self, isd_as: IsdAsn, which: &RestartOf) -> Result<Vec<String>, LabError> {
        let state = self.dir.read_state()?;
        let owner = state.require(isd_as)?;
        let as_ = &state.ases[owner];
        let mut restarted = Vec::new();
        for service in services(as_, which)? {
            let request = Request::Restart { isd_as, service };
            protocol::call(&self.dir.socket(), &request, TIMEOUT)?;
            restarted.push(as_.service_name(service));
        }
        Ok(restarted)
    }
}

/// The chosen services that the lab runs; at least one.
fn services(as_: &AsState, which: &RestartOf) -> Result<Vec<Service>, LabError> {
    let isd_as = as_.isd_as;
    if let RestartOf::Router(name) = which
        && !as_.routers.iter().any(|router| router.name == *name)
    {
        let all: Vec<_> = as_.routers.iter().map(|r| r.name.as_str()).collect();
        let all = all.join(", ");
        return Err(LabError::Failed(format!(
            "{isd_as} has no router {name}: it has {all}"
        )));
    }
    let is_chosen = |service: &Service| match (which, *service) {
        (RestartOf::All, _) => true,
        (RestartOf::Control, service) => service == Service::Control,
        (RestartOf::Emulator, service) => service == Service::Emulator,
        (RestartOf::Routers, service) => matches!(service, Service::Router(_)),
        (RestartOf::Router(name), Service::Router(index)) => as_.routers[index].name == *name,
        (RestartOf::Router(_), _) => false,
    };
    let services: Vec<_> = as_.services().into_iter().filter(is_chosen).collect();
    if services.is_empty() && *which == RestartOf::Emulator {
        return Err(LabError::Failed(format!(
            "{isd_as} has no emulator: none of its links had delay, jitter or loss"
        )));
    }
    if services.is_empty() {
        let service = match which {
            RestartOf::All => "router and no control service",
            RestartOf::Routers | RestartOf::Router(_) => "router",
            RestartOf::Control | RestartOf::Emulator => "control service",
        };
        return Err(LabError::Failed(format!(
            "the lab runs no {service} of {isd_as} (--no-router, --no-control): restart it where it was started"
        )));
    }
    Ok(services)
}

#[cfg(test)]
mod tests {
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;
    use crate::state::{LabState, RouterState, Settings};

    #[test]
    fn only_services_of_the_lab_are_selected() {
        let network = Network::ready("fig4").unwrap();
        let plan = Plan::of(&network).unwrap();
        let settings = Settings {
            no_router: vec![network.ases[1].isd_as],
            ..Settings::default()
        };
        let mut state = LabState::new(&plan, &settings, false).unwrap();
        state.ases[0].routers.push(RouterState {
            name: "second".to_owned(),
            process: None,
        });
        let [first, second] = &state.ases[..] else {
            panic!("{state:?}");
        };
        let [one, two] = [0, 1].map(Service::Router);
        let named = RestartOf::Router("second".to_owned());
        assert_eq!(
            services(first, &RestartOf::All).unwrap(),
            [one, two, Service::Control]
        );
        assert_eq!(services(first, &RestartOf::Routers).unwrap(), [one, two]);
        assert_eq!(services(first, &named).unwrap(), [two]);
        assert_eq!(
            services(first, &RestartOf::Control).unwrap(),
            [Service::Control]
        );
        assert_eq!(
            services(second, &RestartOf::All).unwrap(),
            [Service::Control]
        );
        let by_hand = services(second, &RestartOf::Routers).unwrap_err();
        assert!(by_hand.to_string().contains("no router of"), "{by_hand}");
        let unknown = services(second, &named).unwrap_err().to_string();
        assert!(unknown.contains(&second.routers[0].name), "{unknown}");
    }
}
