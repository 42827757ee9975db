//! The description of the API: what its operations share. Each one is described where it is answered.

#![expect(
    dead_code,
    reason = "answers are named in the description by these types, and never made of them"
)]

use hawser_http::describe::{
    BadRequest, Conflict, ErrorBody, Forbidden, NotFound, NotStored, Tokens, TooLong, TooMany,
    TooSlow, Unauthorized,
};
use utoipa::{IntoParams, IntoResponses, OpenApi};

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
            BadRequest, Conflict, Forbidden, NotFound, NotStored, TooLong, TooMany, TooSlow, Unauthorized
        )
    )
)]
pub(super) struct Shared;

/// Answers to a request that is not let in.
#[derive(IntoResponses)]
pub(super) enum Refused {
    #[response(status = 401)]
    Unauthorized(#[ref_response] Unauthorized),
    #[response(status = 403)]
    Forbidden(#[ref_response] Forbidden),
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
