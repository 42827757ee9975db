//! The description of the API: what its operations share. Each one is described where it is answered.

#![expect(
    dead_code,
    reason = "parameters are described by these types, and never made of them"
)]

use hawser_coordinator::describe::IsdAs;
use hawser_http::describe::{
    BadRequest, Conflict, ErrorBody, Forbidden, NotFound, NotStored, Tokens, TooLong, TooMany,
    TooSlow, Unauthorized,
};
use utoipa::openapi::OpenApi as Description;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi};

use crate::auth::SESSION_COOKIE;

/// All but the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hawser link limits",
        version = "1",
        description = "Limits of links between attachment points and user ASes."
    ),
    security(("token" = []), ("session" = [])),
    modifiers(&Tokens, &Others),
    components(
        schemas(ErrorBody, IsdAs),
        responses(
            BadRequest, Conflict, Forbidden, NotFound, NotStored, TooLong, TooMany, TooSlow, Unauthorized
        )
    )
)]
pub(crate) struct Shared;

/// Who may ask, but by a token.
struct Others;

impl Modify for Others {
    fn modify(&self, description: &mut Description) {
        let components = description.components.get_or_insert_default();
        let cookie = ApiKey::Cookie(ApiKeyValue::new(SESSION_COOKIE));
        components.add_security_scheme("session", SecurityScheme::ApiKey(cookie));
        let words = "The secret of the machine of an AS, which its archive contains; or as the password of \
                     HTTP basic authentication, with the machine's name as the user.";
        let secret = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(words));
        components.add_security_scheme("machine", SecurityScheme::Http(secret.build()));
    }
}

/// The link that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfLink {
    /// The number of the link.
    #[param(example = 1)]
    id: u64,
}

/// The user that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfUser {
    /// The number of the user.
    #[param(example = 1)]
    id: u64,
}

/// The AS that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfAs {
    /// The AS, as 1-ff00:0:110.
    #[param(value_type = IsdAs)]
    isd_as: String,
}

/// The machine that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfMachine {
    /// The machine: its AS with _ for :, as 1-ff00_0_110.
    id: String,
}

/// How long a machine waits for a change.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Seconds to wait for a change before the answer that there is none; at most 50.
    #[param(maximum = 18446744073709551615u64)]
    wait: Option<u64>,
}

/// What a machine has already.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IfNoneMatch {
    /// The ETag of what the machine has.
    #[param(rename = "If-None-Match", nullable = false)]
    tag: Option<String>,
}
