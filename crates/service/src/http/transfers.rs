//! The JSON API.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_endhost::ScionAddr;
use hawser_http::describe::{ErrorBody, MakesChange, NamesOne, NotStored, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::caller::Requester;
use super::describe::{OfTransfer, Refused};
use crate::job::{Job, JobId};
use crate::queue::SubmitError;
use crate::service::{NewJob, RequestError, Service};
use crate::text;
use crate::users::PlaceError;

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The body of a submission.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTransfer)]
pub(super) struct Submit {
    /// A file or folder, absolute below one of the user's folders, or relative to the first.
    #[schema(min_length = 1, examples("run.bin"))]
    source: String,
    /// The address that the other site prints, as `1-ff00:0:111,10.0.2.1:31000`; the host may be an
    /// IPv6 address in brackets.
    #[serde(deserialize_with = "text::deserialize")]
    #[schema(value_type = String, examples("1-ff00:0:111,10.0.2.1:31000"))]
    server: ScionAddr,
    /// The name there, below that server's folder, without `/` before it; without one, or with `/` at
    /// its end, the name that it has here.
    #[serde(default)]
    destination: String,
    /// Transfers of higher priority run first; at most what the user may give.
    #[serde(default)]
    #[schema(minimum = -128, maximum = 127)]
    priority: i8,
}

/// The body of a change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TransferChange)]
pub(super) struct Change {
    /// Transfers of higher priority run first; at most what the user may give.
    #[schema(minimum = -128, maximum = 127)]
    priority: i8,
}

/// The answer with several transfers.
#[derive(Serialize, ToSchema)]
pub(super) struct Transfers {
    transfers: Vec<Job>,
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

/// The user's transfers; of an admin, all
#[utoipa::path(
    get, path = "/transfers", operation_id = "list_transfers",
    responses((status = 200, description = "They", body = Transfers), Refused),
)]
pub(super) async fn list(State(service): State<Service>, Requester(user): Requester) -> Response {
    let transfers = service.jobs(&user).await;
    json(StatusCode::OK, &Transfers { transfers })
}

/// Submit a transfer
#[utoipa::path(
    post, path = "/transfers", operation_id = "submit_transfer",
    request_body = Submit,
    responses(
        (status = 201, description = "The transfer: it is on disk", body = Job),
        Refused,
        ReadsBody,
        MakesChange,
        (status = 429, body = ErrorBody,
            description = "As many transfers of the user wait as are allowed; \
                or too many wrong tokens from this address"),
    ),
)]
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

/// A transfer
#[utoipa::path(
    get, path = "/transfers/{id}", operation_id = "show_transfer", params(OfTransfer),
    responses(
        (status = 200, description = "The transfer", body = Job),
        Refused,
        NamesOne,
    ),
)]
pub(super) async fn show(
    State(service): State<Service>,
    Requester(user): Requester,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let job = service.job(&user, id(&text)?).await.map_err(refused)?;
    Ok(json(StatusCode::OK, &job))
}

/// Give a transfer another priority
#[utoipa::path(
    patch, path = "/transfers/{id}", operation_id = "change_transfer", params(OfTransfer),
    request_body = Change,
    responses(
        (status = 200, description = "The transfer", body = Job),
        Refused,
        ReadsBody,
        NamesOne,
        MakesChange,
        (status = 409, description = "It has ended", body = ErrorBody),
    ),
)]
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

/// Cancel a transfer
#[utoipa::path(
    delete, path = "/transfers/{id}", operation_id = "cancel_transfer", params(OfTransfer),
    responses(
        (status = 200, description = "The transfer", body = Job),
        Refused,
        NamesOne,
        (status = 409, description = "It has ended", body = ErrorBody),
        (status = 503, response = NotStored),
    ),
)]
pub(super) async fn cancel(
    State(service): State<Service>,
    Requester(user): Requester,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let job = service.cancel(&user, id(&text)?).await.map_err(refused)?;
    Ok(json(StatusCode::OK, &job))
}
