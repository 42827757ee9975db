//! Attachment points and user ASes.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, NewAttachmentPoint, NewUserAs};
use hawser_http::{JsonError, json, read_json};
use hawser_topology::IsdAsn;
use serde_json::json as value;

use super::check;
use crate::answers::{MAX_BODY, bad, change};
use crate::app::App;
use crate::auth::Caller;
use crate::view::AsView;

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

/// `GET /api/v1/attachment-points`
pub(crate) async fn attachment_points(
    State(app): State<App>,
    caller: Caller,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let all = state.attachment_points.values();
    let all: Vec<_> = all.map(|one| AsView::attachment_point(&app, one)).collect();
    Ok(json(StatusCode::OK, &value!({ "attachment_points": all })))
}

/// `GET /api/v1/attachment-points/{isd_as}`
pub(crate) async fn attachment_point(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (isd_as, state) = (isd_as(&text)?, app.coordinator().state());
    let one = state.attachment_points.get(&isd_as);
    let one = one.ok_or_else(|| unknown(isd_as))?;
    Ok(json(StatusCode::OK, &AsView::attachment_point(&app, one)))
}

/// `POST /api/v1/attachment-points`
pub(crate) async fn add_attachment_point(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewAttachmentPoint = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let one = change(move || coordinator.add_attachment_point(&actor, new)).await?;
    let view = AsView::attachment_point(&app, &one);
    Ok(json(StatusCode::CREATED, &view))
}

/// `PUT /api/v1/attachment-points/{isd_as}`
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
    Ok(json(StatusCode::OK, &AsView::attachment_point(&app, &one)))
}

/// `DELETE /api/v1/attachment-points/{isd_as}`
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

/// `GET /api/v1/ases`
pub(crate) async fn user_ases(
    State(app): State<App>,
    caller: Caller,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let all = state.user_ases.values();
    let all: Vec<_> = all.map(|one| AsView::user_as(&app, &state, one)).collect();
    Ok(json(StatusCode::OK, &value!({ "ases": all })))
}

/// `GET /api/v1/ases/{isd_as}`
pub(crate) async fn user_as(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (isd_as, state) = (isd_as(&text)?, app.coordinator().state());
    let one = state.user_ases.get(&isd_as);
    let one = one.ok_or_else(|| unknown(isd_as))?;
    Ok(json(StatusCode::OK, &AsView::user_as(&app, &state, one)))
}

/// `POST /api/v1/ases`
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
        &AsView::user_as(&app, &state, &one),
    ))
}

/// `PUT /api/v1/ases/{isd_as}`
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
    Ok(json(StatusCode::OK, &AsView::user_as(&app, &state, &one)))
}

/// `DELETE /api/v1/ases/{isd_as}`
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
