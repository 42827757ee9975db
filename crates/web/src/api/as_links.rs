//! Links between user ASes, and peering links.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, AsLink, NewAsLink};
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
pub(crate) struct AsLinks<'a> {
    as_links: Vec<&'a AsLink>,
}

/// The links between user ASes, and the peering links
#[utoipa::path(
    get, path = "/api/v1/as-links", operation_id = "list_as_links",
    responses((status = 200, description = "The links", body = AsLinks), NeedsUser),
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let as_links = state.as_links.values().collect();
    Ok(json(StatusCode::OK, &AsLinks { as_links }))
}

/// Add a link between two user ASes, or a peering link (administrators)
#[utoipa::path(
    post, path = "/api/v1/as-links", operation_id = "add_as_link",
    request_body = NewAsLink,
    responses(
        (status = 201, description = "The link", body = AsLink),
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
    let new: NewAsLink = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.add_as_link(&actor, &new)).await?;
    Ok(json(StatusCode::CREATED, &link))
}

/// Change a link between user ASes or a peering link: limit, queue, delay, jitter, loss (administrators)
///
/// What is absent stays as it is. Such a link has no `maximum`.
#[utoipa::path(
    patch, path = "/api/v1/as-links/{id}", operation_id = "change_as_link",
    request_body = Patch,
    params(OfLink),
    responses(
        (status = 200, description = "The link", body = AsLink),
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
    let link = change(move || coordinator.edit_as_link(&actor, id, &edit)).await?;
    Ok(json(StatusCode::OK, &link))
}

/// Remove a link between user ASes or a peering link (administrators)
#[utoipa::path(
    delete, path = "/api/v1/as-links/{id}", operation_id = "remove_as_link",
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
    change(move || coordinator.remove_as_link(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
