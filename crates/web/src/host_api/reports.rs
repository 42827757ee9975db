//! What machines report.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{LinkId, LinkUsage};
use hawser_http::{JsonError, json, read_json};
use serde::Deserialize;
use serde_json::json as value;

use super::changing;
use super::machine::Machine;
use crate::app::App;

/// Most bytes of a report: of some thousand links.
const MAX_REPORT: usize = 2 << 20;

/// A version that a machine runs, or could not bring into force.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deployed {
    version: u64,
    /// Why it is not in force.
    #[serde(default)]
    error: Option<String>,
    /// The links whose limits alone are not in force.
    #[serde(default)]
    links: Vec<FailedLink>,
}

/// A link whose limits are not in force.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedLink {
    link: LinkId,
    error: String,
}

/// `POST /api/host/{id}/deployed_config_version`
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
    Ok(json(StatusCode::OK, &value!({ "version": version })))
}

/// What the links of a machine carried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Usage {
    links: Vec<LinkUsage>,
}

/// `POST /api/host/{id}/usage`
pub(crate) async fn usage(
    State(app): State<App>,
    machine: Machine,
    body: Body,
) -> Result<Response, JsonError> {
    let Usage { links } = read_json(body, MAX_REPORT).await?;
    let count = links.len();
    app.coordinator().report_usage(machine.isd_as, links);
    Ok(json(StatusCode::OK, &value!({ "links": count })))
}
