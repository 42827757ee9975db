//! The API below `/api/v1`.

pub(crate) mod as_links;
pub(crate) mod ases;
pub(crate) mod changes;
pub(crate) mod core_links;
pub(crate) mod links;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod session;
pub(crate) mod usage;
pub(crate) mod users;

use axum::http::StatusCode;
use hawser_coordinator::{Action, allows};
use hawser_http::JsonError;

use crate::auth::Caller;

/// Refuses who may not do `action`.
fn check(caller: &Caller, action: Action) -> Result<(), JsonError> {
    let denied =
        |denied: hawser_coordinator::Denied| JsonError(StatusCode::FORBIDDEN, denied.to_string());
    allows(&caller.actor(), action).map_err(denied)
}
