//! The archive with which the owner of an AS brings it up, and the end of its secret.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hawser_coordinator::Configurations;
use hawser_http::JsonError;
use hawser_http::describe::{Conflict, MakesChange, NamesOne, NeedsUser};
use hawser_topology::IsdAsn;

use super::configuration::with_tag;
use super::{Confidential, blocking, changing, configurations};
use crate::api::openapi::OfAs;
use crate::app::App;
use crate::auth::Caller;

fn isd_as(text: &str) -> Result<IsdAsn, JsonError> {
    let unknown = |_| JsonError(StatusCode::NOT_FOUND, format!("there is no AS {text:?}"));
    text.parse().map_err(unknown)
}

/// The archive with which an AS joins: for the AS's owner and administrators
#[utoipa::path(
    get, path = "/api/v1/ases/{isd_as}/archive", operation_id = "show_archive",
    params(OfAs),
    responses(
        (status = 200, content_type = "application/gzip", headers(("ETag" = String)),
            description = "A tar.gz for `hawser as join`"),
        NeedsUser, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn archive(
    State(app): State<App>,
    caller: Caller,
    _: Confidential,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let isd_as = isd_as(&text)?;
    let (configurations, actor) = (configurations(&app)?.clone(), caller.actor());
    let archive = blocking(move || configurations.archive_of(&actor, isd_as)).await?;
    let body = Body::from(archive.bytes.clone());
    let mut response = with_tag(StatusCode::OK, Some(&archive.tag), body);
    let name = Configurations::host_name(isd_as);
    let name = format!("attachment; filename=\"{name}.tar.gz\"");
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/gzip"),
    );
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// End the secret of an AS's machine
///
/// For users who may fetch the archive. Earlier archives are refused from now on; the next one has a new
/// secret and new keys.
#[utoipa::path(
    delete, path = "/api/v1/ases/{isd_as}/secret",
    params(OfAs),
    responses(
        (status = 204, description = "Archives before are refused"),
        NeedsUser, NamesOne, MakesChange,
    ),
)]
pub(crate) async fn rotate_secret(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    configurations(&app)?;
    let isd_as = isd_as(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    changing(move || coordinator.rotate_secret(&actor, isd_as)).await?;
    Ok(StatusCode::NO_CONTENT)
}
