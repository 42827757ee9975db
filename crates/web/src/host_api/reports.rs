//! What machines report.

use std::collections::BTreeMap;
use std::net::IpAddr;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::describe::Address;
use hawser_coordinator::{LinkId, LinkUsage};
use hawser_http::describe::{Conflict, NamesOne, NeedsUser, NotStored, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changing;
use super::machine::Machine;
use crate::api::openapi::OfMachine;
use crate::app::App;

/// Most bytes of a report: of some thousand links.
const MAX_REPORT: usize = 2 << 20;
/// Most bytes of a report of an address.
const MAX_ADDRESS: usize = 1 << 10;

/// A version that a machine runs, or could not bring into force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deployed {
    #[schema(maximum = 18446744073709551615u64)]
    version: u64,
    /// Why it is not in force.
    #[serde(default)]
    error: Option<String>,
    /// The links whose limits alone are not in force.
    #[serde(default)]
    links: Vec<FailedLink>,
}

/// A link whose limits are not in force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailedLink {
    link: LinkId,
    /// Why.
    error: String,
}

/// The answer to a report of a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeployedVersion {
    version: u64,
}

/// Report the version that a machine runs, or why it is not in force
#[utoipa::path(
    post, path = "/api/host/{id}/deployed_config_version", operation_id = "report_deployed",
    security(("machine" = [])),
    request_body = Deployed,
    params(OfMachine),
    responses(
        (status = 200, description = "It is stored", body = DeployedVersion),
        NeedsUser, ReadsBody, NamesOne,
        (status = 503, response = NotStored),
    ),
)]
pub(crate) async fn deployed(
    State(app): State<App>,
    machine: Machine,
    body: Body,
) -> Result<Response, JsonError> {
    let Deployed {
        version,
        error,
        links,
    } = read_json(body, MAX_REPORT).await?;
    let (coordinator, isd_as) = (app.coordinator().clone(), machine.isd_as);
    changing(move || match error {
        None => {
            let failed = links.into_iter().map(|one| (one.link, one.error));
            coordinator.report_links(isd_as, failed.collect());
            coordinator.report_deployed(isd_as, version)
        }
        Some(reason) => {
            coordinator.report_failure(isd_as, version, &reason);
            Ok(())
        }
    })
    .await?;
    Ok(json(StatusCode::OK, &DeployedVersion { version }))
}

/// What the links of a machine carried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    links: Vec<LinkUsage>,
}

/// The answer to a report of what links carried.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageTaken {
    /// How many.
    links: usize,
}

/// Report what the links of an attachment point carried
///
/// Since their limits were set up.
#[utoipa::path(
    post, path = "/api/host/{id}/usage", operation_id = "report_usage", security(("machine" = [])),
    request_body = Usage,
    params(OfMachine),
    responses(
        (status = 200, description = "It is taken", body = UsageTaken),
        NeedsUser, ReadsBody, NamesOne,
    ),
)]
pub(crate) async fn usage(
    State(app): State<App>,
    machine: Machine,
    body: Body,
) -> Result<Response, JsonError> {
    let Usage { links } = read_json(body, MAX_REPORT).await?;
    let taken = UsageTaken { links: links.len() };
    app.coordinator().report_usage(machine.isd_as, links);
    Ok(json(StatusCode::OK, &taken))
}

/// An address that a machine has in place of another one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Moved {
    /// An address of the AS for links, which the machine has no more.
    #[schema(value_type = Address)]
    from: IpAddr,
    /// The address that it has now, of the same family.
    #[schema(value_type = Address)]
    to: IpAddr,
}

/// The answer to a report of an address.
#[derive(Serialize, ToSchema)]
pub(crate) struct MovedTo {
    #[schema(value_type = Address)]
    address: IpAddr,
}

/// Report that a machine has another address
///
/// The links of its AS follow, as if its addresses had been changed.
#[utoipa::path(
    post, path = "/api/host/{id}/address", operation_id = "report_address",
    security(("machine" = [])),
    request_body = Moved,
    params(OfMachine),
    responses(
        (status = 200, description = "It is stored, and the neighbours follow", body = MovedTo),
        NeedsUser, ReadsBody, NamesOne,
        (status = 409, response = Conflict),
        (status = 503, response = NotStored),
    ),
)]
pub(crate) async fn address(
    State(app): State<App>,
    machine: Machine,
    body: Body,
) -> Result<Response, JsonError> {
    let Moved { from, to } = read_json(body, MAX_ADDRESS).await?;
    let (coordinator, isd_as) = (app.coordinator().clone(), machine.isd_as);
    changing(move || coordinator.report_address(isd_as, from, to)).await?;
    Ok(json(StatusCode::OK, &MovedTo { address: to }))
}

/// What a machine has found of what carries the links of its AS.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FoundMtus {
    links: Vec<FoundMtu>,
}

/// What carries a link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FoundMtu {
    /// The interface of the AS.
    interface: u16,
    /// The largest SCION packet that fits.
    mtu: u16,
}

/// The answer to a report of MTUs.
#[derive(Serialize, ToSchema)]
pub(crate) struct MtusTaken {
    links: usize,
}

/// Report how large packets the links of an AS take
///
/// Links have the smaller MTU that both ends report, at least 1280 bytes and at most what Ethernet takes.
/// Interfaces that the AS does not have are left out.
#[utoipa::path(
    post, path = "/api/host/{id}/mtus", operation_id = "report_mtus",
    security(("machine" = [])),
    request_body = FoundMtus,
    params(OfMachine),
    responses(
        (status = 200, description = "It is stored, and the neighbours follow", body = MtusTaken),
        NeedsUser, ReadsBody, NamesOne,
        (status = 503, response = NotStored),
    ),
)]
pub(crate) async fn mtus(
    State(app): State<App>,
    machine: Machine,
    body: Body,
) -> Result<Response, JsonError> {
    let FoundMtus { links } = read_json(body, MAX_REPORT).await?;
    let taken = MtusTaken { links: links.len() };
    let mtus: BTreeMap<u16, u16> = links
        .iter()
        .map(|link| (link.interface, link.mtu))
        .collect();
    let (coordinator, isd_as) = (app.coordinator().clone(), machine.isd_as);
    changing(move || coordinator.report_mtus(isd_as, &mtus)).await?;
    Ok(json(StatusCode::OK, &taken))
}
