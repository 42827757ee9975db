//! The use of links: now, as a stream, and over time.

use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Action, Direction, LinkId};
use hawser_http::{JsonError, json};
use serde_json::json as value;

use super::check;
use crate::answers::{Query, number};
use crate::app::App;
use crate::auth::Caller;
use crate::live;

/// Seconds of history without a parameter.
const SPAN: u64 = 600;

/// `GET /api/v1/usage`
pub(crate) async fn now(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, app.live().current().body.clone()).into_response())
}

/// `GET /api/v1/live`: events.
pub(crate) async fn live(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    // The stream lasts for minutes: whoever loses the right to it loses the stream.
    let of = app.clone();
    let may_read = move || caller.is_still(&of) && check(&caller, Action::Read).is_ok();
    let changes = app.coordinator().subscribe();
    Ok(app.live().topic().stream(changes, may_read))
}

/// `GET /api/v1/links/{id}/history?span=SECONDS`
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let id = LinkId(number("link", &text)?);
    let span = Query::new(query.as_deref(), &["span"])?.number("span")?;
    if !app.coordinator().state().links.contains_key(&id) {
        let reason = format!("there is no link {id}");
        return Err(JsonError(StatusCode::NOT_FOUND, reason));
    }
    let (at, span) = (live::now(), span.unwrap_or(SPAN));
    let series = {
        let sampler = app.live().sampler();
        Direction::ALL.map(|direction| sampler.series(id, direction, at, span))
    };
    let [egress, ingress] = series;
    let history = value!({ "at": at, "egress": egress, "ingress": ingress });
    Ok(json(StatusCode::OK, &history))
}
