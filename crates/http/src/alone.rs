//! A socket on which few paths are served, for programs and not for web pages.

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn;

use crate::answer::{JsonError, json_errors};
use crate::listener::Listener;
use crate::origin::refuse_pages;

impl Listener {
    /// Serves these routes alone: other paths are answered 404 with `reason`, and requests from web pages
    /// are refused.
    pub(crate) async fn serve_alone(self, routes: Router, reason: &'static str) {
        let nothing_else =
            move || async move { JsonError(StatusCode::NOT_FOUND, reason.to_owned()) };
        let router = routes.fallback(nothing_else).layer(from_fn(refuse_pages));
        self.serve(router.layer(from_fn(json_errors))).await;
    }
}
