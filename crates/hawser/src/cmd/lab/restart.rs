//! `hawser lab restart`: services of an AS, ended and started again.

use hawser_lab::{Lab, RestartOf};
use hawser_topology::IsdAsn;

use crate::cli::ServiceArg;
use crate::failure::Failure;
use crate::out::outln;

/// Restarts the services that are meant, and names them.
pub fn run(
    lab: &Lab,
    isd_as: IsdAsn,
    service: Option<ServiceArg>,
    router: Option<String>,
) -> Result<(), Failure> {
    let which = match (service, router) {
        (None, _) => RestartOf::All,
        (Some(ServiceArg::Router), None) => RestartOf::Routers,
        (Some(ServiceArg::Router), Some(name)) => RestartOf::Router(name),
        (Some(ServiceArg::Control), None) => RestartOf::Control,
        (Some(ServiceArg::Control), Some(name)) => {
            return Err(Failure::usage(format!(
                "lab restart: {name:?} after control: an AS has one control service, leave the name out"
            )));
        }
    };
    for service in lab.restart(isd_as, &which).map_err(Failure::job)? {
        outln!("the {service} runs again");
    }
    Ok(())
}
