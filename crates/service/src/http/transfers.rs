//! The JSON API, and the counters.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_endhost::ScionAddr;
use hawser_http::{JsonError, json, prometheus, read_json};
use serde::Deserialize;
use serde_json::json as value;

use super::caller::Requester;
use crate::job::JobId;
use crate::queue::SubmitError;
use crate::service::{NewJob, RequestError, Service};
use crate::text;
use crate::users::PlaceError;

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The body of a submission.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submit {
    source: String,
    #[serde(deserialize_with = "text::deserialize")]
    server: ScionAddr,
    #[serde(default)]
    destination: String,
    #[serde(default)]
    priority: i8,
}

/// The body of a change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    priority: i8,
}

fn refused(reason: RequestError) -> JsonError {
    let status = match &reason {
        // Another user's is no different from none.
        RequestError::NotYours(id) => return refused(RequestError::Unknown(*id)),
        RequestError::Unknown(_) => StatusCode::NOT_FOUND,
        RequestError::Ended(_) => StatusCode::CONFLICT,
        RequestError::Source(PlaceError::NoFolder | PlaceError::Outside(_)) => {
            StatusCode::FORBIDDEN
        }
        RequestError::Submit(SubmitError::Full(_)) => StatusCode::TOO_MANY_REQUESTS,
        RequestError::Submit(_) => StatusCode::FORBIDDEN,
        RequestError::Source(_) | RequestError::Destination(_) | RequestError::Absolute(_) => {
            StatusCode::BAD_REQUEST
        }
        RequestError::Log(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    JsonError(status, reason.to_string())
}

fn id(text: &str) -> Result<JobId, JsonError> {
    let unknown = |_| {
        JsonError(
            StatusCode::NOT_FOUND,
            format!("there is no transfer {text:?}"),
        )
    };
    text.parse().map(JobId).map_err(unknown)
}

/// `GET /transfers`
pub(super) async fn list(State(service): State<Service>, Requester(user): Requester) -> Response {
    let jobs = service.jobs(&user).await;
    json(StatusCode::OK, &value!({ "transfers": jobs }))
}

/// `POST /transfers`
pub(super) async fn submit(
    State(service): State<Service>,
    Requester(user): Requester,
    body: Body,
) -> Result<Response, JsonError> {
    let new: Submit = read_json(body, MAX_BODY).await?;
    let new = NewJob {
        source: new.source,
        server: new.server,
        destination: new.destination,
        priority: new.priority,
    };
    let job = service.submit(&user, new).await.map_err(refused)?;
    Ok(json(StatusCode::CREATED, &job))
}

/// `GET /transfers/ID`
pub(super) async fn show(
    State(service): State<Service>,
    Requester(user): Requester,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let job = service.job(&user, id(&text)?).await.map_err(refused)?;
    Ok(json(StatusCode::OK, &job))
}

/// `PATCH /transfers/ID`
pub(super) async fn change(
    State(service): State<Service>,
    Requester(user): Requester,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    let (id, change): (_, Change) = (id(&text)?, read_json(body, MAX_BODY).await?);
    let changed = service.prioritize(&user, id, change.priority).await;
    Ok(json(StatusCode::OK, &changed.map_err(refused)?))
}

/// `DELETE /transfers/ID`
pub(super) async fn cancel(
    State(service): State<Service>,
    Requester(user): Requester,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let job = service.cancel(&user, id(&text)?).await.map_err(refused)?;
    Ok(json(StatusCode::OK, &job))
}

/// `GET /metrics`
pub(super) async fn metrics(State(service): State<Service>) -> Response {
    prometheus(service.metrics().await)
}
