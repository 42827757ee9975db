//! The record of changes.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{ChangePage, LinkId};
use hawser_http::describe::{BadRequest, NeedsUser, NotStored};
use hawser_http::{JsonError, json};

use crate::answers::{Query, change};
use crate::app::App;
use crate::auth::Caller;

/// Changes on a page without a parameter.
const COUNT: u64 = 50;

/// The record of changes, the newest first; those of users for administrators alone
#[utoipa::path(
    get, path = "/api/v1/changes", operation_id = "list_changes",
    params(
        ("before" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "Only changes with lower numbers."),
        ("count" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "At most so many: 1 to 500, and 50 when absent."),
        ("link" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "Only those of this link."),
    ),
    responses(
        (status = 200, description = "A page", body = ChangePage),
        NeedsUser,
        (status = 400, response = BadRequest),
        (status = 503, response = NotStored),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    let query = Query::new(query.as_deref(), &["before", "count", "link"])?;
    let before = query.number("before")?;
    let count = query.number("count")?.unwrap_or(COUNT);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let link = query.number("link")?.map(LinkId);
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let page = change(move || coordinator.changes(&actor, before, count, link)).await?;
    Ok(json(StatusCode::OK, &page))
}
