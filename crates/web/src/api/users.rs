//! Users and their tokens.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, Role, User, UserId};
use hawser_http::{JsonError, Token, json, read_json};
use serde::Deserialize;
use serde_json::json as value;

use super::check;
use crate::answers::{MAX_BODY, change, number};
use crate::app::App;
use crate::auth::Caller;
use crate::view::UserView;

/// The body that adds a user.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    name: String,
    role: Role,
}

/// The body that gives a user another role.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetRole {
    role: Role,
}

fn id(text: &str) -> Result<UserId, JsonError> {
    number("user", text).map(UserId)
}

/// A user with a new token, which is not shown again.
fn with_token(status: StatusCode, user: &User, token: &Token) -> Response {
    let user = UserView::new(user);
    json(status, &value!({ "user": user, "token": token.reveal() }))
}

/// `GET /api/v1/users`
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::ReadUsers)?;
    let state = app.coordinator().state();
    let users: Vec<_> = state.users.values().map(UserView::new).collect();
    Ok(json(StatusCode::OK, &value!({ "users": users })))
}

/// `POST /api/v1/users`
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: Add = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let added = change(move || coordinator.add_user(&actor, &new.name, new.role)).await?;
    Ok(with_token(StatusCode::CREATED, &added.0, &added.1))
}

/// `PATCH /api/v1/users/{id}`
pub(crate) async fn set_role(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let id = id(&text)?;
    let SetRole { role } = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let user = change(move || coordinator.set_role(&actor, id, role)).await?;
    Ok(json(StatusCode::OK, &UserView::new(&user)))
}

/// `DELETE /api/v1/users/{id}`
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_user(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/users/{id}/token`
pub(crate) async fn replace_token(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let replaced = change(move || {
        let token = coordinator.replace_token(&actor, id)?;
        Ok((coordinator.state().users.get(&id).cloned(), token))
    });
    match replaced.await? {
        (Some(user), token) => Ok(with_token(StatusCode::OK, &user, &token)),
        (None, _) => Err(JsonError(
            StatusCode::NOT_FOUND,
            format!("there is no user {id}"),
        )),
    }
}

/// `DELETE /api/v1/users/{id}/token`
pub(crate) async fn revoke_token(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.revoke_token(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
