//! What the descriptions of APIs (OpenAPI) share: answers that are errors, and how requests
//! are authenticated.
//!
//! Answers are never made of these types: they are names for `responses(...)` of [`utoipa::path`].
//! The enums are several answers at once.

use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, Modify, ToResponse};

pub use crate::answer::ErrorBody;

/// The request is not as it should be
#[derive(ToResponse)]
pub struct BadRequest(pub ErrorBody);

/// The token or session is missing or wrong
#[derive(ToResponse)]
#[response(headers(("WWW-Authenticate" = String)))]
pub struct Unauthorized(pub ErrorBody);

/// The user may not do this, or a web page asks
#[derive(ToResponse)]
pub struct Forbidden(pub ErrorBody);

/// A web page asks
#[derive(ToResponse)]
pub struct Page(pub ErrorBody);

/// There is no such thing, or not for this user
#[derive(ToResponse)]
pub struct NotFound(pub ErrorBody);

/// It does not go together with what is there
#[derive(ToResponse)]
pub struct Conflict(pub ErrorBody);

/// The body did not arrive within 10 s
#[derive(ToResponse)]
pub struct TooSlow(pub ErrorBody);

/// The body is longer than 64 KiB
#[derive(ToResponse)]
pub struct TooLong(pub ErrorBody);

/// Too many wrong tokens from this address
#[derive(ToResponse)]
#[response(headers(("Retry-After" = u64)))]
pub struct TooMany(pub ErrorBody);

/// It cannot be stored; nothing has changed
#[derive(ToResponse)]
pub struct NotStored(pub ErrorBody);

/// Answers to requests without a user.
#[derive(IntoResponses)]
pub enum NeedsUser {
    /// 401
    #[response(status = 401)]
    Unauthorized(#[ref_response] Unauthorized),
    /// 429
    #[response(status = 429)]
    TooMany(#[ref_response] TooMany),
}

/// Answers to requests whose body is not as it should be.
#[derive(IntoResponses)]
pub enum ReadsBody {
    /// 400
    #[response(status = 400)]
    BadRequest(#[ref_response] BadRequest),
    /// 408
    #[response(status = 408)]
    TooSlow(#[ref_response] TooSlow),
    /// 413
    #[response(status = 413)]
    TooLong(#[ref_response] TooLong),
}

/// Answers to requests whose path names something.
#[derive(IntoResponses)]
pub enum NamesOne {
    /// 400
    #[response(status = 400)]
    BadRequest(#[ref_response] BadRequest),
    /// 404
    #[response(status = 404)]
    NotFound(#[ref_response] NotFound),
}

/// Answers to requests that change something.
#[derive(IntoResponses)]
pub enum MakesChange {
    /// 403
    #[response(status = 403)]
    Forbidden(#[ref_response] Forbidden),
    /// 503
    #[response(status = 503)]
    NotStored(#[ref_response] NotStored),
}

/// The scheme with the name `token`: a bearer token. For `modifiers(...)` of [`OpenApi`](derive@utoipa::OpenApi).
#[derive(Debug)]
pub struct Tokens;

impl Modify for Tokens {
    fn modify(&self, description: &mut OpenApi) {
        let scheme =
            SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("token", scheme);
    }
}

/// A description as JSON.
#[must_use]
pub fn text(description: &OpenApi) -> String {
    // It consists of texts, numbers and lists: writing it as JSON cannot fail.
    let mut value = serde_json::to_value(description).unwrap_or_default();
    without_widths(&mut value);
    format!("{value:#}\n")
}

/// Removes the formats of integers: `int64` is also written for a `u64`, which may be above it. Their
/// bounds say more.
fn without_widths(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_widths),
        Value::Object(fields) => {
            let is_width = |format: &Value| format == "int32" || format == "int64";
            if fields.get("format").is_some_and(is_width) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_widths);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_bounds_and_no_widths() {
        let mut value = serde_json::json!({
            "egress": {"type": "integer", "format": "int64", "minimum": 0},
            "ports": {"items": [{"type": "integer", "format": "int32"}]},
            "share": {"type": "number", "format": "double"},
            "format": {"type": "string", "format": "ipv4"},
        });
        without_widths(&mut value);
        let expected = serde_json::json!({
            "egress": {"type": "integer", "minimum": 0},
            "ports": {"items": [{"type": "integer"}]},
            "share": {"type": "number", "format": "double"},
            "format": {"type": "string", "format": "ipv4"},
        });
        assert_eq!(value, expected);
    }
}
