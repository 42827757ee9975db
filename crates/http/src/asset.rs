//! Files of pages that are inside the program.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::token::TokenHash;

/// A file of media type `kind`, which browsers keep and ask for again each time. It is not sent again
/// where the request's `If-None-Match` shows that the browser has it.
#[must_use]
pub fn asset(request: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let hash = TokenHash::of(text).to_string();
    let tag = format!("\"{}\"", hash.get(..16).unwrap_or_default());
    let known = request.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let cached = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, cached).into_response(),
        false => (cached, [(header::CONTENT_TYPE, kind)], text).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = asset(&HeaderMap::new(), "text/css", "a { }");
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].clone();
        let request = HeaderMap::from_iter([(header::IF_NONE_MATCH, tag)]);
        let again = asset(&request, "text/css", "a { }");
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        let changed = asset(&request, "text/css", "b { }");
        assert_eq!(changed.status(), StatusCode::OK);
    }
}
