//! Links between attachment points.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, CoreLink, NewCoreLink};
use hawser_http::describe::{Conflict, MakesChange, NamesOne, NeedsUser, NotFound, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use serde::Serialize;
use utoipa::ToSchema;

use super::check;
use super::links::{Patch, id};
use super::openapi::OfLink;
use crate::answers::{MAX_BODY, change};
use crate::app::App;
use crate::auth::Caller;

/// The answer with all of them.
#[derive(Serialize, ToSchema)]
pub(crate) struct CoreLinks<'a> {
    core_links: Vec<&'a CoreLink>,
}

/// Change a link between attachment points: delay, jitter, loss (administrators)
///
/// What is absent stays as it is. Such a link has no `limit`, `maximum` and `queue_us`.
#[utoipa::path(
    patch, path = "/api/v1/core-links/{id}", operation_id = "change_core_link",
    request_body = Patch,
    params(OfLink),
    responses(
        (status = 200, description = "The link", body = CoreLink),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
    ),
)]
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    let id = id(&text)?;
    let edit = read_json::<Patch>(body, MAX_BODY).await?.edit()?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.edit_core_link(&actor, id, &edit)).await?;
    Ok(json(StatusCode::OK, &link))
}

/// Remove a link between attachment points (administrators)
#[utoipa::path(
    delete, path = "/api/v1/core-links/{id}", operation_id = "remove_core_link",
    params(OfLink),
    responses((status = 204, description = "It is removed"), NeedsUser, NamesOne, MakesChange),
)]
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_core_link(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Add a link between two attachment points (administrators)
#[utoipa::path(
    post, path = "/api/v1/core-links", operation_id = "add_core_link",
    request_body = NewCoreLink,
    responses(
        (status = 201, description = "The link", body = CoreLink),
        NeedsUser, ReadsBody, MakesChange,
        (status = 404, response = NotFound),
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewCoreLink = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.add_core_link(&actor, &new)).await?;
    Ok(json(StatusCode::CREATED, &link))
}

/// The links between attachment points
#[utoipa::path(
    get, path = "/api/v1/core-links", operation_id = "list_core_links",
    responses((status = 200, description = "The links", body = CoreLinks), NeedsUser),
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let core_links = state.core_links.values().collect();
    Ok(json(StatusCode::OK, &CoreLinks { core_links }))
}
