//! The description of the API: what its operations share. Each one is described where it is answered.

#![expect(
    dead_code,
    reason = "answers are named in the description by these types, and never made of them"
)]

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use hawser_http::describe::{
    BadRequest, Conflict, ErrorBody, Forbidden, NotFound, NotStored, Tokens, TooLong, TooMany,
    TooSlow, Unauthorized,
};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToResponse};

/// All but the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hawser torrents",
        version = "1",
        description = "The torrents of a host. Transmission's RPC is at /transmission/rpc."
    ),
    security(("token" = [])),
    modifiers(&Tokens),
    components(
        schemas(ErrorBody),
        responses(
            BadRequest, Conflict, Forbidden, NotFound, NotStored, Page, TooLong, TooMany, TooSlow,
            Unauthorized
        )
    )
)]
pub(super) struct Shared;

/// The description, as OpenAPI 3.1.
pub(super) static TEXT: LazyLock<String> =
    LazyLock::new(|| hawser_http::describe::text(super::api().get_openapi()));

/// `GET` of the description.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "describe", summary = "This description", security(),
    responses(
        (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
        (status = 403, response = Page),
    ),
)]
pub(super) async fn description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// A web page asks
#[derive(ToResponse)]
pub(super) struct Page(ErrorBody);

/// Answers to a request that is not let in.
#[derive(IntoResponses)]
pub(super) enum Refused {
    #[response(status = 401)]
    Unauthorized(#[ref_response] Unauthorized),
    #[response(status = 403)]
    Page(#[ref_response] Page),
    #[response(status = 429)]
    TooMany(#[ref_response] TooMany),
}

/// Answers to a request that changes a torrent.
#[derive(IntoResponses)]
pub(super) enum ChangesOne {
    #[response(status = 409)]
    Conflict(#[ref_response] Conflict),
    #[response(status = 503)]
    NotStored(#[ref_response] NotStored),
}

/// The torrent that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfTorrent {
    /// The info-hash of the torrent.
    #[param(example = "0123456789abcdef0123456789abcdef01234567")]
    hash: String,
}

/// The file that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfFile {
    /// The info-hash of the torrent.
    #[param(example = "0123456789abcdef0123456789abcdef01234567")]
    hash: String,
    /// The index of the file in the metainfo, from 0.
    #[param(example = 0)]
    index: u32,
}
