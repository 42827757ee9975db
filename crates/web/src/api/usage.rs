//! The use of links: now, as a stream, and over time.

use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Action, Direction, LinkId};
use hawser_http::describe::{NamesOne, NeedsUser};
use hawser_http::{JsonError, json};
use serde::Serialize;
use utoipa::ToSchema;

use super::check;
use super::openapi::OfLink;
use crate::answers::{Query, number};
use crate::app::App;
use crate::auth::Caller;
use crate::history::Series;
use crate::live::{self, LiveUsage};

/// The answer with the rates of a link over time.
#[derive(Serialize, ToSchema)]
pub(crate) struct RateHistory {
    /// When this was answered, in milliseconds since 1970.
    at: u64,
    egress: Series,
    ingress: Series,
}

/// Seconds of history without a parameter.
const SPAN: u64 = 600;

/// What all links carry now, sampled each second
#[utoipa::path(
    get, path = "/api/v1/usage", operation_id = "show_usage",
    responses((status = 200, description = "The last sample", body = LiveUsage), NeedsUser),
)]
pub(crate) async fn now(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, app.live().current().body.clone()).into_response())
}

/// Events: each sample as it is made
#[utoipa::path(
    get, path = "/api/v1/live", operation_id = "follow_usage",
    responses(
        (status = 200, body = String, content_type = "text/event-stream",
            description = "Server-sent events, each {\"at\", \"revision\", \"rates\": [[link, \
                egress, ingress], ...]}: bit/s of the links that carry something. \
                `revision` grows when links have changed"),
        NeedsUser,
    ),
)]
pub(crate) async fn live(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    // The stream lasts for minutes: whoever loses the right to it loses the stream.
    let of = app.clone();
    let may_read = move || caller.is_still(&of) && check(&caller, Action::Read).is_ok();
    let changes = app.coordinator().subscribe();
    Ok(app.live().topic().stream(changes, may_read))
}

/// Rates of a link over time, in both directions
#[utoipa::path(
    get, path = "/api/v1/links/{id}/history", operation_id = "show_history",
    params(
        OfLink,
        ("span" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "How far back, in seconds: each second up to 600, beyond that each \
                minute up to 86400. 600 when absent."),
    ),
    responses(
        (status = 200, description = "The rates", body = RateHistory),
        NeedsUser, NamesOne,
    ),
)]
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let id = LinkId(number("link", &text)?);
    let span = Query::new(query.as_deref(), &["span"])?.number("span")?;
    if app.coordinator().state().limits_of(id).is_none() {
        let reason = format!("there is no link {id}");
        return Err(JsonError(StatusCode::NOT_FOUND, reason));
    }
    let (at, span) = (live::now(), span.unwrap_or(SPAN));
    let series = {
        let sampler = app.live().sampler();
        Direction::ALL.map(|direction| sampler.series(id, direction, at, span))
    };
    let [egress, ingress] = series;
    let history = RateHistory {
        at,
        egress,
        ingress,
    };
    Ok(json(StatusCode::OK, &history))
}
