//! The record of changes.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::LinkId;
use hawser_http::{JsonError, json};

use crate::answers::{Query, change};
use crate::app::App;
use crate::auth::Caller;

/// Changes on a page without a parameter.
const COUNT: u64 = 50;

/// `GET /api/v1/changes?before=NUMBER&count=N&link=ID`
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
