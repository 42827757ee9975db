//! Attachment points and user ASes.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, NewAttachmentPoint, NewUserAs};
use hawser_http::describe::{Conflict, MakesChange, NamesOne, NeedsUser, NotFound, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use hawser_topology::IsdAsn;
use serde::Serialize;
use utoipa::ToSchema;

use super::check;
use super::openapi::OfAs;
use crate::answers::{MAX_BODY, bad, change};
use crate::app::App;
use crate::auth::Caller;
use crate::view::{AttachmentPointView, UserAsView};

/// The answer with all attachment points.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttachmentPoints<'a> {
    attachment_points: Vec<AttachmentPointView<'a>>,
}

/// The answer with all user ASes.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserAses<'a> {
    ases: Vec<UserAsView<'a>>,
}

fn isd_as(text: &str) -> Result<IsdAsn, JsonError> {
    let unknown = |_| JsonError(StatusCode::NOT_FOUND, format!("there is no AS {text:?}"));
    text.parse().map_err(unknown)
}

/// The AS of the path and that of the body are one.
fn check_same(path: IsdAsn, body: IsdAsn) -> Result<(), JsonError> {
    match path == body {
        true => Ok(()),
        false => Err(bad(format!(
            "the body is of {body}, and the path of {path}: an AS keeps its number"
        ))),
    }
}

fn unknown(isd_as: IsdAsn) -> JsonError {
    JsonError(StatusCode::NOT_FOUND, format!("there is no AS {isd_as}"))
}

/// All attachment points
#[utoipa::path(
    get, path = "/api/v1/attachment-points", operation_id = "list_attachment_points",
    responses((status = 200, description = "They", body = AttachmentPoints), NeedsUser),
)]
pub(crate) async fn attachment_points(
    State(app): State<App>,
    caller: Caller,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let all = state.attachment_points.values();
    let attachment_points = all.map(|one| AttachmentPointView::new(&app, one)).collect();
    Ok(json(
        StatusCode::OK,
        &AttachmentPoints { attachment_points },
    ))
}

/// One attachment point
#[utoipa::path(
    get, path = "/api/v1/attachment-points/{isd_as}", operation_id = "show_attachment_point",
    params(OfAs),
    responses(
        (status = 200, description = "It", body = AttachmentPointView),
        NeedsUser, NamesOne,
    ),
)]
pub(crate) async fn attachment_point(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (isd_as, state) = (isd_as(&text)?, app.coordinator().state());
    let one = state.attachment_points.get(&isd_as);
    let one = one.ok_or_else(|| unknown(isd_as))?;
    Ok(json(StatusCode::OK, &AttachmentPointView::new(&app, one)))
}

/// Add an attachment point (administrators)
#[utoipa::path(
    post, path = "/api/v1/attachment-points",
    request_body = NewAttachmentPoint,
    responses(
        (status = 201, description = "It", body = AttachmentPointView),
        NeedsUser, ReadsBody, MakesChange,
        (status = 404, response = NotFound),
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn add_attachment_point(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewAttachmentPoint = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let one = change(move || coordinator.add_attachment_point(&actor, new)).await?;
    let view = AttachmentPointView::new(&app, &one);
    Ok(json(StatusCode::CREATED, &view))
}

/// Change an attachment point (administrators)
#[utoipa::path(
    put, path = "/api/v1/attachment-points/{isd_as}",
    request_body = NewAttachmentPoint,
    params(OfAs),
    responses(
        (status = 200, description = "It", body = AttachmentPointView),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn change_attachment_point(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewAttachmentPoint = read_json(body, MAX_BODY).await?;
    check_same(isd_as(&text)?, new.isd_as)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let one = change(move || coordinator.change_attachment_point(&actor, new)).await?;
    Ok(json(StatusCode::OK, &AttachmentPointView::new(&app, &one)))
}

/// Remove an attachment point and its links (administrators)
#[utoipa::path(
    delete, path = "/api/v1/attachment-points/{isd_as}",
    params(OfAs),
    responses((status = 204, description = "It is removed"), NeedsUser, NamesOne, MakesChange),
)]
pub(crate) async fn remove_attachment_point(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let isd_as = isd_as(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_attachment_point(&actor, isd_as)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// All user ASes
#[utoipa::path(
    get, path = "/api/v1/ases", operation_id = "list_user_ases",
    responses((status = 200, description = "They", body = UserAses), NeedsUser),
)]
pub(crate) async fn user_ases(
    State(app): State<App>,
    caller: Caller,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let all = state.user_ases.values();
    let ases = all.map(|one| UserAsView::new(&app, &state, one)).collect();
    Ok(json(StatusCode::OK, &UserAses { ases }))
}

/// One user AS
#[utoipa::path(
    get, path = "/api/v1/ases/{isd_as}", operation_id = "show_user_as",
    params(OfAs),
    responses((status = 200, description = "It", body = UserAsView), NeedsUser, NamesOne),
)]
pub(crate) async fn user_as(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (isd_as, state) = (isd_as(&text)?, app.coordinator().state());
    let one = state.user_ases.get(&isd_as);
    let one = one.ok_or_else(|| unknown(isd_as))?;
    Ok(json(StatusCode::OK, &UserAsView::new(&app, &state, one)))
}

/// Add a user AS (administrators)
#[utoipa::path(
    post, path = "/api/v1/ases",
    request_body = NewUserAs,
    responses(
        (status = 201, description = "It", body = UserAsView),
        NeedsUser, ReadsBody, MakesChange,
        (status = 404, response = NotFound),
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn add_user_as(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewUserAs = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let one = change(move || coordinator.add_user_as(&actor, new)).await?;
    let state = app.coordinator().state();
    Ok(json(
        StatusCode::CREATED,
        &UserAsView::new(&app, &state, &one),
    ))
}

/// Change a user AS (administrators)
#[utoipa::path(
    put, path = "/api/v1/ases/{isd_as}",
    request_body = NewUserAs,
    params(OfAs),
    responses(
        (status = 200, description = "It", body = UserAsView),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn change_user_as(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewUserAs = read_json(body, MAX_BODY).await?;
    check_same(isd_as(&text)?, new.isd_as)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let one = change(move || coordinator.change_user_as(&actor, new)).await?;
    let state = app.coordinator().state();
    Ok(json(StatusCode::OK, &UserAsView::new(&app, &state, &one)))
}

/// Remove a user AS and its links (administrators)
#[utoipa::path(
    delete, path = "/api/v1/ases/{isd_as}",
    params(OfAs),
    responses((status = 204, description = "It is removed"), NeedsUser, NamesOne, MakesChange),
)]
pub(crate) async fn remove_user_as(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let isd_as = isd_as(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_user_as(&actor, isd_as)).await?;
    Ok(StatusCode::NO_CONTENT)
}
