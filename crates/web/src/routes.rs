//! Which function answers what.

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use hawser_http::{JsonError, json_errors};

use crate::api::{ases, changes, links, metrics, openapi, session, usage, users};
use crate::app::App;
use crate::host_api;
use crate::page;

/// What browsers may do with the page: run and show what this server sends, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A router that knows its routes.
pub(crate) struct Routes {
    router: Router<App>,
    /// Method and path of each.
    pub list: Vec<(Method, &'static str)>,
}

impl Routes {
    fn new() -> Self {
        Self {
            router: Router::new(),
            list: Vec::new(),
        }
    }

    /// Has `handler` answer requests of a method to a path.
    pub fn on<H, T>(mut self, method: Method, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        let answers: MethodRouter<App> = on(filter, handler);
        self.router = self.router.route(path, answers);
        self.list.push((method, path));
        self
    }

    fn get<H: Handler<T, App>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on(Method::GET, path, handler)
    }

    fn post<H: Handler<T, App>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on(Method::POST, path, handler)
    }

    fn put<H: Handler<T, App>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on(Method::PUT, path, handler)
    }

    fn patch<H: Handler<T, App>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on(Method::PATCH, path, handler)
    }

    fn delete<H: Handler<T, App>, T: 'static>(self, path: &'static str, handler: H) -> Self {
        self.on(Method::DELETE, path, handler)
    }
}

/// The routes of the API.
pub(crate) fn api() -> Routes {
    Routes::new()
        .get("/api/v1/openapi.json", openapi::show)
        .get("/api/v1/session", session::show)
        .post("/api/v1/session", session::log_in)
        .delete("/api/v1/session", session::log_out)
        .get("/api/v1/links", links::list)
        .post("/api/v1/links", links::add)
        .get("/api/v1/links/{id}", links::show)
        .patch("/api/v1/links/{id}", links::set)
        .delete("/api/v1/links/{id}", links::remove)
        .get("/api/v1/links/{id}/history", usage::history)
        .get("/api/v1/core-links", links::list_core)
        .post("/api/v1/core-links", links::add_core)
        .delete("/api/v1/core-links/{id}", links::remove_core)
        .get("/api/v1/usage", usage::now)
        .get("/api/v1/live", usage::live)
        .get("/api/v1/changes", changes::list)
        .get("/api/v1/attachment-points", ases::attachment_points)
        .post("/api/v1/attachment-points", ases::add_attachment_point)
        .get("/api/v1/attachment-points/{isd_as}", ases::attachment_point)
        .put(
            "/api/v1/attachment-points/{isd_as}",
            ases::change_attachment_point,
        )
        .delete(
            "/api/v1/attachment-points/{isd_as}",
            ases::remove_attachment_point,
        )
        .get("/api/v1/ases", ases::user_ases)
        .post("/api/v1/ases", ases::add_user_as)
        .get("/api/v1/ases/{isd_as}", ases::user_as)
        .put("/api/v1/ases/{isd_as}", ases::change_user_as)
        .delete("/api/v1/ases/{isd_as}", ases::remove_user_as)
        .get("/api/v1/users", users::list)
        .post("/api/v1/users", users::add)
        .patch("/api/v1/users/{id}", users::set_role)
        .delete("/api/v1/users/{id}", users::remove)
        .post("/api/v1/users/{id}/token", users::replace_token)
        .delete("/api/v1/users/{id}/token", users::revoke_token)
        .get("/api/v1/ases/{isd_as}/archive", host_api::archive)
        .delete("/api/v1/ases/{isd_as}/secret", host_api::rotate_secret)
        .get("/api/host/{id}/config", host_api::configuration)
        .get("/api/host/{id}/segments", host_api::segments)
        .post("/api/host/{id}/deployed_config_version", host_api::deployed)
        .post("/api/host/{id}/usage", host_api::usage)
        .get("/metrics", metrics::metrics)
}

/// Which function answers what: the API and the page.
pub fn router(app: App) -> Router {
    let router = api().router;
    let router = router
        .route("/", on(MethodFilter::GET, page::index))
        .route("/assets/{name}", on(MethodFilter::GET, page::asset));
    router
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(
            app.clone(),
            host_api::name_other_machine,
        ))
        .layer(from_fn(json_errors))
        .layer(from_fn(secure))
        .with_state(app)
}

/// Any other path.
async fn nothing() -> JsonError {
    let reason = "there is nothing at this path: see /api/v1/openapi.json";
    JsonError(StatusCode::NOT_FOUND, reason.to_owned())
}

/// Any other method.
async fn other_method() -> JsonError {
    let reason = "this path does not have this method: see /api/v1/openapi.json";
    JsonError(StatusCode::METHOD_NOT_ALLOWED, reason.to_owned())
}

/// Adds to each answer what keeps browsers from doing more with it than it is for.
async fn secure(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What a user sees is for that user's eyes. Assets have their own rule.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests;
