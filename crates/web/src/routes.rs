//! Which function answers what.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hawser_http::describe::text;
use hawser_http::page::secure;
use hawser_http::{JsonError, json_errors, nothing};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::{
    as_links, ases, changes, core_links, links, metrics, openapi, session, usage, users,
};
use crate::app::App;
use crate::host_api::{archive, configuration, name_other_machine, reports};
use crate::page;

/// The routes of the API, with their descriptions.
pub(crate) fn api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::Shared::openapi())
        .routes(routes!(show_description))
        .routes(routes!(session::show, session::log_in, session::log_out))
        .routes(routes!(links::list, links::add))
        .routes(routes!(links::show, links::set, links::remove))
        .routes(routes!(usage::history))
        .routes(routes!(core_links::list, core_links::add))
        .routes(routes!(core_links::set, core_links::remove))
        .routes(routes!(as_links::list, as_links::add))
        .routes(routes!(as_links::set, as_links::remove))
        .routes(routes!(usage::now))
        .routes(routes!(usage::live))
        .routes(routes!(changes::list))
        .routes(routes!(ases::attachment_points, ases::add_attachment_point))
        .routes(routes!(
            ases::attachment_point,
            ases::change_attachment_point,
            ases::remove_attachment_point
        ))
        .routes(routes!(ases::user_ases, ases::add_user_as))
        .routes(routes!(
            ases::user_as,
            ases::change_user_as,
            ases::remove_user_as
        ))
        .routes(routes!(users::list, users::add))
        .routes(routes!(users::set_role, users::remove))
        .routes(routes!(users::replace_token, users::revoke_token))
        .routes(routes!(archive::archive))
        .routes(routes!(archive::rotate_secret))
        .routes(routes!(configuration::configuration))
        .routes(routes!(configuration::segments))
        .routes(routes!(reports::deployed))
        .routes(routes!(reports::usage))
        .routes(routes!(reports::address))
        .routes(routes!(reports::mtus))
        .routes(routes!(metrics::metrics))
}

/// The description of the API, as OpenAPI 3.1.
pub fn description() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| text(api().get_openapi()));
    &TEXT
}

/// This description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", operation_id = "describe", security(),
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json")),
)]
async fn show_description() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], description()).into_response()
}

/// Which function answers what: the API and the page.
pub fn router(app: App) -> Router {
    let (router, _) = api().split_for_parts();
    let router = router
        .route("/", get(page::index))
        .route("/assets/{name}", get(page::asset));
    router
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .layer(from_fn_with_state(app.clone(), name_other_machine))
        .layer(from_fn(json_errors))
        .layer(from_fn(secure))
        .with_state(app)
}

/// Any other method.
async fn other_method() -> JsonError {
    let reason = "this path does not have this method: see /api/v1/openapi.json";
    JsonError(StatusCode::METHOD_NOT_ALLOWED, reason.to_owned())
}

#[cfg(test)]
mod tests;
