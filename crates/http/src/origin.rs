//! Requests that a web page makes in its visitor's name.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::JsonError;

/// What a request from a page is answered where none is served.
pub const NO_PAGES: &str = "Requests from web pages are refused";

/// Whether a page may have made the request. Programs send none of the headers that tell.
///
/// With `by_address` also where the request names this host by a name other than `localhost`: a page
/// whose name was made to lead here sends its own name (DNS rebinding). For
/// servers that authenticate requests by their connection alone.
#[must_use]
pub fn may_be_from_page(request: &HeaderMap, by_address: bool) -> bool {
    let site = request.get("sec-fetch-site").map(|site| site.as_bytes());
    let crossed = !matches!(site, None | Some(b"none" | b"same-origin"));
    crossed || request.contains_key(header::ORIGIN) || by_address && !names_this_host(request)
}

/// The header that the pages of hawser send with each request. Pages of others cannot send it: a browser
/// asks the server first, and gets no answer.
pub const PAGE_HEADER: &str = "x-hawser-page";

/// Whether a page made the request that this host serves: over plain HTTP at an address or as `localhost`, as a
/// page whose name was made to lead here is none (DNS rebinding); over `tls` under any name, of which the
/// server's certificate is the proof.
#[must_use]
pub fn is_own_page(request: &HeaderMap, tls: bool) -> bool {
    let text = |name: header::HeaderName| request.get(name)?.to_str().ok();
    let (host, origin) = (text(header::HOST), text(header::ORIGIN));
    let is_same = match (host, origin) {
        (Some(host), Some(origin)) => {
            origin.strip_prefix(if tls { "https://" } else { "http://" }) == Some(host)
        }
        // Browsers send no origin with requests of a page that only look at something on its own site.
        _ => request
            .get("sec-fetch-site")
            .is_some_and(|site| site == "same-origin"),
    };
    is_same && request.contains_key(PAGE_HEADER) && (tls || names_this_host(request))
}

/// Refuses requests from web pages; for [`from_fn`](axum::middleware::from_fn).
pub(crate) async fn refuse_pages(request: Request, next: Next) -> Response {
    match may_be_from_page(request.headers(), false) {
        true => JsonError(StatusCode::FORBIDDEN, NO_PAGES.to_owned()).into_response(),
        false => next.run(request).await,
    }
}

/// Whether the request names this host by an address or as `localhost`.
fn names_this_host(request: &HeaderMap) -> bool {
    let host = request
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let ip = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || ip.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &str)]) -> HeaderMap {
        let headers = headers.iter().map(|(name, value)| {
            let name = header::HeaderName::from_static(name);
            (name, value.parse().unwrap())
        });
        headers.collect()
    }

    #[test]
    fn pages_are_told_by_their_headers() {
        for (headers, expected) in [
            (&[][..], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("origin", "null")], true),
            (&[("host", "attacker.example:8030")], false),
        ] {
            let is_page = may_be_from_page(&request(headers), false);
            assert_eq!(is_page, expected, "{headers:?}");
        }
    }

    #[test]
    fn the_own_page_is_told_by_its_origin_and_header() {
        let own = ("host", "127.0.0.1:9091");
        let (page, origin) = (("x-hawser-page", "1"), ("origin", "http://127.0.0.1:9091"));
        for (headers, expected) in [
            (&[own, page, origin][..], true),
            (&[own, page, ("sec-fetch-site", "same-origin")], true),
            (&[own, origin], false),
            (&[own, page], false),
            (&[own, page, ("origin", "https://127.0.0.1:9091")], false),
            (&[own, page, ("origin", "http://127.0.0.1:80")], false),
            (&[own, page, ("origin", "http://attacker.example")], false),
            (&[own, page, ("origin", "null")], false),
            (
                &[
                    ("host", "attacker.example:9091"),
                    page,
                    ("origin", "http://attacker.example:9091"),
                ],
                false,
            ),
        ] {
            let is_own = is_own_page(&request(headers), false);
            assert_eq!(is_own, expected, "{headers:?}");
        }
        let named = ("host", "a.example:9091");
        for (origin, tls, expected) in [
            ("https://a.example:9091", true, true),
            ("https://a.example:9091", false, false),
            ("http://a.example:9091", true, false),
            ("https://b.example:9091", true, false),
        ] {
            let request = request(&[named, page, ("origin", origin)]);
            assert_eq!(is_own_page(&request, tls), expected, "{origin} {tls}");
        }
    }

    #[test]
    fn a_name_that_leads_here_is_none_of_ours() {
        for own in [
            "localhost",
            "localhost:80",
            "127.0.0.1:80",
            "[::1]:80",
            "[::1]",
        ] {
            assert!(!may_be_from_page(&request(&[("host", own)]), true), "{own}");
        }
        for foreign in ["attacker.example", "localhost.example:80", "", ":80"] {
            let request = request(&[("host", foreign)]);
            assert!(may_be_from_page(&request, true), "{foreign}");
        }
        assert!(may_be_from_page(&HeaderMap::new(), true));
    }
}
