//! Users and their tokens.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::describe::Name;
use hawser_coordinator::{Action, Role, User, UserId};
use hawser_http::describe::{Conflict, Forbidden, MakesChange, NamesOne, NeedsUser, ReadsBody};
use hawser_http::{JsonError, Token, json, read_json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::check;
use super::openapi::OfUser;
use crate::answers::{MAX_BODY, change, number};
use crate::app::App;
use crate::auth::Caller;
use crate::view::UserView;

/// The body that adds a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewUser)]
pub(crate) struct Add {
    /// None that people would take for another user's.
    #[schema(value_type = Name)]
    name: String,
    role: Role,
}

/// The body that gives a user another role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRole)]
pub(crate) struct SetRole {
    role: Role,
}

/// The answer with all users.
#[derive(Serialize, ToSchema)]
pub(crate) struct Users<'a> {
    users: Vec<UserView<'a>>,
}

/// The answer with a user whose token is new.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserWithToken<'a> {
    user: UserView<'a>,
    /// The token: it is not shown again.
    token: &'a str,
}

fn id(text: &str) -> Result<UserId, JsonError> {
    number("user", text).map(UserId)
}

/// A user with a new token, which is not shown again.
fn with_token(status: StatusCode, user: &User, token: &Token) -> Response {
    let user = UserView::new(user);
    let token = token.reveal();
    json(status, &UserWithToken { user, token })
}

/// The users (administrators)
#[utoipa::path(
    get, path = "/api/v1/users", operation_id = "list_users",
    responses(
        (status = 200, description = "The users", body = Users),
        NeedsUser,
        (status = 403, response = Forbidden),
    ),
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::ReadUsers)?;
    let state = app.coordinator().state();
    let users = state.users.values().map(UserView::new).collect();
    Ok(json(StatusCode::OK, &Users { users }))
}

/// Add a user (administrators)
#[utoipa::path(
    post, path = "/api/v1/users", operation_id = "add_user",
    request_body = Add,
    responses(
        (status = 201, description = "The user and the token", body = UserWithToken),
        NeedsUser, ReadsBody, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
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

/// Give a user another role (administrators)
#[utoipa::path(
    patch, path = "/api/v1/users/{id}",
    request_body = SetRole,
    params(OfUser),
    responses(
        (status = 200, description = "The user", body = UserView),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
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

/// Remove a user (administrators)
#[utoipa::path(
    delete, path = "/api/v1/users/{id}", operation_id = "remove_user",
    params(OfUser),
    responses(
        (status = 204, description = "The user is removed"),
        NeedsUser, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
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

/// Replace a token: one's own, or any (administrators)
#[utoipa::path(
    post, path = "/api/v1/users/{id}/token",
    params(OfUser),
    responses(
        (status = 200, description = "The user and the new token", body = UserWithToken),
        NeedsUser, NamesOne, MakesChange,
    ),
)]
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

/// Revoke a token (administrators)
#[utoipa::path(
    delete, path = "/api/v1/users/{id}/token",
    params(OfUser),
    responses(
        (status = 204, description = "It counts no more"),
        NeedsUser, NamesOne, MakesChange,
        (status = 409, response = Conflict),
    ),
)]
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
