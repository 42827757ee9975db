//! The description of the API: what its operations share. Each one is described where it is answered.

#![expect(
    dead_code,
    reason = "answers are named in the description by these types, and never made of them"
)]

use hawser_http::describe::{
    BadRequest, ErrorBody, Forbidden, NotFound, NotStored, Page, Tokens, TooLong, TooMany, TooSlow,
    Unauthorized,
};
use utoipa::{IntoParams, IntoResponses, OpenApi, ToResponse};

use super::answer::Line;

/// All but the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hawser transfers",
        version = "1",
        description = "A queue of transfers, in JSON, and with the requests of Hercules' monitor, in text."
    ),
    security(("token" = [])),
    modifiers(&Tokens),
    components(
        schemas(ErrorBody, Line),
        responses(
            BadRequest, Forbidden, NotFound, NotStored, Page, TextBadRequest, TextNotStored, TextPage,
            TextTooMany, TextUnauthorized, TooLong, TooMany, TooSlow, Unauthorized
        )
    )
)]
pub(super) struct Shared;

/// The transfer that a query names.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AskedTransfer {
    /// The transfer.
    #[param(maximum = 18446744073709551615u64, example = 1)]
    id: u64,
}

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

/// The request is not as it should be
#[derive(ToResponse)]
#[response(content_type = "text/plain")]
pub(super) struct TextBadRequest(Line);

/// No user, or another user's; or the source does not exist
#[derive(ToResponse)]
#[response(headers(("WWW-Authenticate" = String)))]
pub(super) struct TextUnauthorized(String);

/// A web page asks
#[derive(ToResponse)]
#[response(content_type = "text/plain")]
pub(super) struct TextPage(Line);

/// Too many transfers wait, or too many wrong tokens came from this address
#[derive(ToResponse)]
pub(super) struct TextTooMany(String);

/// It cannot be stored; nothing has changed
#[derive(ToResponse)]
#[response(content_type = "text/plain")]
pub(super) struct TextNotStored(Line);

/// Answers to a request of Hercules' monitor that is refused.
#[derive(IntoResponses)]
pub(super) enum TextRefused {
    #[response(status = 400)]
    BadRequest(#[ref_response] TextBadRequest),
    #[response(status = 401)]
    Unauthorized(#[ref_response] TextUnauthorized),
    #[response(status = 403)]
    Page(#[ref_response] TextPage),
    #[response(status = 429)]
    TooMany(#[ref_response] TextTooMany),
}

/// The transfer that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfTransfer {
    /// The number of the transfer.
    #[param(maximum = 18446744073709551615u64, example = 1)]
    id: u64,
}
