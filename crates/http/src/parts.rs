//! An API of several parts on one server: one description, one set of metrics.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::openapi::OpenApi;

use crate::answer::{JsonError, json_errors, nothing, prometheus};
use crate::describe::{self, ErrorBody, Page};
use crate::origin::refuse_pages;

/// Makes the metrics of a part, in Prometheus' text format; fails while they cannot be told.
pub type MetricsSource =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, JsonError>> + Send>> + Send + Sync>;

/// A part of an API.
pub struct ApiPart {
    /// Its routes, with the authorization of their requests. They have no fallback.
    pub routes: Router,
    /// Their description.
    pub description: OpenApi,
    /// Its metrics, whose names no other part has.
    pub metrics: MetricsSource,
}

/// The routes that are added to those of the parts.
#[derive(utoipa::OpenApi)]
#[openapi(
    paths(description, metrics),
    components(schemas(ErrorBody), responses(Page))
)]
struct Added;

/// The description of an API of parts with these descriptions, as JSON: what [`api()`] answers. What `first`
/// says of all stands before what they say.
#[must_use]
pub fn described(first: OpenApi, parts: impl IntoIterator<Item = OpenApi>) -> String {
    let mut whole = first;
    for part in parts {
        whole.merge(part);
    }
    whole.merge(<Added as utoipa::OpenApi>::openapi());
    describe::text(&whole)
}

/// The routes of all parts; beside them their description at `/api/v1/openapi.json`, which begins with
/// `first`, and their metrics at `/metrics`. Neither needs a token, and both are refused to web pages.
/// What no part has is answered 404.
pub fn api(first: OpenApi, parts: Vec<ApiPart>) -> Router {
    let mut router = Router::new();
    let (mut descriptions, mut sources) = (Vec::new(), Vec::new());
    for part in parts {
        router = router.merge(part.routes);
        descriptions.push(part.description);
        sources.push(part.metrics);
    }
    let text: Arc<str> = described(first, descriptions).into();
    let sources: Arc<[MetricsSource]> = sources.into();
    let added = Router::new()
        .route("/api/v1/openapi.json", get(move || description(text)))
        .route("/metrics", get(move || metrics(sources)))
        .layer(from_fn(refuse_pages))
        .layer(from_fn(json_errors));
    router.merge(added).fallback(nothing)
}

/// This description
#[utoipa::path(
    get, path = "/api/v1/openapi.json", operation_id = "describe", security(),
    responses(
        (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
        (status = 403, response = Page),
    ),
)]
async fn description(text: Arc<str>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, text.to_string()).into_response()
}

/// Counters and gauges for Prometheus
#[utoipa::path(
    get, path = "/metrics", security(),
    responses(
        (status = 200, body = String, content_type = "text/plain", description = "hawser_..."),
        (status = 403, response = Page),
        (status = 503, body = ErrorBody, description = "The program is stopping"),
    ),
)]
async fn metrics(sources: Arc<[MetricsSource]>) -> Result<Response, JsonError> {
    let mut text = String::new();
    for source in sources.iter() {
        text += &source().await?;
    }
    Ok(prometheus(text))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    use utoipa::OpenApi as _;

    use super::*;

    #[derive(utoipa::OpenApi)]
    #[openapi(info(title = "all", version = "1"))]
    struct All;

    #[derive(utoipa::OpenApi)]
    #[openapi(info(title = "one", version = "2"), paths(one))]
    struct One;

    #[utoipa::path(get, path = "/one", responses((status = 200, description = "It")))]
    async fn one() -> &'static str {
        "1"
    }

    fn part(name: &'static str, routes: Router, description: OpenApi) -> ApiPart {
        let metrics: MetricsSource = Arc::new(move || Box::pin(async move { Ok(name.to_owned()) }));
        ApiPart {
            routes,
            description,
            metrics,
        }
    }

    async fn ask(router: &Router, path: &str, origin: Option<&str>) -> (StatusCode, String) {
        let mut request = Request::get(path);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn parts_are_described_and_measured_together() {
        let first = part(
            "first 1\n",
            Router::new().route("/one", get(one)),
            One::openapi(),
        );
        let other = part("other 2\n", Router::new(), All::openapi());
        let router = api(All::openapi(), vec![first, other]);
        assert_eq!(ask(&router, "/one", None).await.1, "1");
        let (status, metrics) = ask(&router, "/metrics", None).await;
        assert_eq!(
            (status, metrics.as_str()),
            (StatusCode::OK, "first 1\nother 2\n")
        );
        let (_, text) = ask(&router, "/api/v1/openapi.json", None).await;
        let described: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(described["info"]["title"], "all");
        let paths = described["paths"].as_object().unwrap();
        let paths: Vec<&str> = paths.keys().map(String::as_str).collect();
        assert_eq!(paths, ["/api/v1/openapi.json", "/metrics", "/one"]);
        assert_eq!(
            ask(&router, "/nothing", None).await.0,
            StatusCode::NOT_FOUND
        );
        for path in ["/api/v1/openapi.json", "/metrics"] {
            let (status, body) = ask(&router, path, Some("http://a.example")).await;
            assert_eq!(status, StatusCode::FORBIDDEN);
            assert!(body.starts_with("{\"error\""), "{body}");
        }
    }

    #[tokio::test]
    async fn metrics_that_cannot_be_told_are_an_error() {
        let mut stopping = part("", Router::new(), All::openapi());
        stopping.metrics = Arc::new(|| {
            let error = JsonError(StatusCode::SERVICE_UNAVAILABLE, "it is stopping".to_owned());
            Box::pin(async move { Err(error) })
        });
        let router = api(All::openapi(), vec![stopping]);
        let (status, body) = ask(&router, "/metrics", None).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.contains("it is stopping"), "{body}");
    }
}
