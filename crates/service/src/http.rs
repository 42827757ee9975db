//! The HTTP API: the user that a request comes from, and the function that answers it.

mod answer;
mod caller;
mod describe;
mod hercules;
mod transfers;

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::any;
use hawser_http::{ApiPart, json_errors};
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use self::caller::Caller;
use crate::service::Service;

/// What the paths of the JSON API begin with.
const PREFIX: &str = "/api/v1";

/// The JSON API, below [`PREFIX`].
fn json_api() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(transfers::list, transfers::submit))
        .routes(routes!(
            transfers::show,
            transfers::change,
            transfers::cancel
        ))
}

/// A handler for any method of its path.
macro_rules! any_method {
    ($handler:path) => {
        routes!($handler).map(|_| any($handler))
    };
}

/// The API of Hercules' monitor: `GET` as any other method.
fn text_api() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(any_method!(hercules::submit))
        .routes(any_method!(hercules::status))
        .routes(any_method!(hercules::cancel))
        .routes(any_method!(hercules::stat))
        .routes(any_method!(hercules::server))
}

/// All routes with their descriptions.
fn api() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(describe::Shared::openapi())
        .nest(PREFIX, json_api())
        .layer(from_fn(json_errors))
        // Its errors are text, as its other answers are.
        .merge(text_api())
}

/// The description of both APIs.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    api().split_for_parts().1
}

/// The transfers as a part of an API: the JSON API, and that of Hercules' monitor. With `may_be_anonymous`,
/// requests without a token act for the user that the service has for them.
pub fn part(service: Service, may_be_anonymous: bool) -> ApiPart {
    let (router, description) = api().split_for_parts();
    let checked = move |mut request: Request, next: Next| async move {
        let caller = Caller::new(request.extensions().get(), may_be_anonymous);
        if let Some(refusal) = caller.refusal(&request) {
            return refusal;
        }
        request.extensions_mut().insert(caller);
        next.run(request).await
    };
    ApiPart {
        routes: router.with_state(service.clone()).layer(from_fn(checked)),
        description,
        metrics: Arc::new(move || {
            let service = service.clone();
            Box::pin(async move { Ok(service.metrics().await) })
        }),
    }
}

#[cfg(test)]
mod tests;
