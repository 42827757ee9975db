//! Configurations and segments, once they differ from what the machine has.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hawser_coordinator::{Configurations, Tagged};
use hawser_http::JsonError;
use hawser_http::describe::{Conflict, Forbidden, NamesOne, NeedsUser};
use tokio::time::{Instant, sleep_until};

use super::machine::Machine;
use super::{Confidential, blocking, configurations};
use crate::answers::Query;
use crate::api::openapi::{IfNoneMatch, OfMachine, Wait};
use crate::app::App;

/// Longest wait for a change, in seconds: shorter than what cuts idle connections on the way.
const MAX_WAIT: u64 = 50;
/// The tag of the answer that nothing is configured.
const NOTHING: &str = "\"nothing\"";

/// What a machine asks for, and what it has.
struct Asked {
    /// The tag of what it has.
    tag: Option<String>,
    /// The version that it has.
    version: Option<u64>,
    /// When it wants an answer, whatever that is.
    until: Instant,
}

impl Asked {
    fn new(query: Option<&str>, headers: &HeaderMap, known: &[&str]) -> Result<Self, JsonError> {
        let query = Query::new(query, known)?;
        let wait = query.number("wait")?.unwrap_or(0).min(MAX_WAIT);
        let tag = headers.get(header::IF_NONE_MATCH);
        Ok(Self {
            tag: tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned),
            version: match known.contains(&"version") {
                true => query.number("version")?,
                false => None,
            },
            until: Instant::now() + Duration::from_secs(wait),
        })
    }

    /// Whether the machine has what `tag` is of.
    fn has(&self, tag: &str) -> bool {
        let known = self.tag.as_deref().unwrap_or_default();
        known
            .split(',')
            .any(|known| known.trim() == tag || known.trim() == "*")
    }
}

/// The configuration of a machine, once it differs from what the machine has
#[utoipa::path(
    get, path = "/api/host/{id}/config", operation_id = "show_configuration",
    security(("machine" = [])),
    params(
        OfMachine,
        ("version" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "The version that the machine has, if it gives no ETag."),
        Wait,
        IfNoneMatch,
    ),
    responses(
        (status = 200, content_type = "application/gzip", headers(("ETag" = String)),
            description = "The archive"),
        (status = 204, description = "Nothing is configured"),
        (status = 304, description = "The machine has the newest"),
        NeedsUser, NamesOne,
        (status = 403, response = Forbidden),
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn configuration(
    State(app): State<App>,
    machine: Machine,
    _: Confidential,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, JsonError> {
    let asked = Asked::new(query.as_deref(), &headers, &["version", "wait"])?;
    let coordinator = app.coordinator().clone();
    let of_version = asked.tag.is_none();
    wait_for(
        configurations(&app)?,
        &machine,
        asked,
        |configurations, asked| {
            let (isd_as, secret) = (machine.isd_as, machine.secret.clone());
            let coordinator = coordinator.clone();
            let known = asked.version.filter(|_| of_version);
            async move {
                let version = coordinator.state().host(isd_as).map(|host| host.version);
                if known.is_some() && known >= version {
                    return Ok(Found::Known);
                }
                let found = blocking(move || configurations.for_host(isd_as, &secret)).await?;
                Ok(found.map_or(Found::Nothing, Found::Some))
            }
        },
    )
    .await
    .map(|answer| answer.unwrap_or_else(|tagged| file(&tagged, "application/gzip")))
}

/// The path segments of the network, once they differ from what the machine has
///
/// They are signed.
#[utoipa::path(
    get, path = "/api/host/{id}/segments", operation_id = "show_segments", security(("machine" = [])),
    params(
        OfMachine,
        Wait,
        IfNoneMatch,
    ),
    responses(
        (status = 200, content_type = "application/json", headers(("ETag" = String)),
            description = "The segments"),
        (status = 304, description = "The machine has the newest"),
        NeedsUser, NamesOne,
    ),
)]
pub(crate) async fn segments(
    State(app): State<App>,
    machine: Machine,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, JsonError> {
    let asked = Asked::new(query.as_deref(), &headers, &["wait"])?;
    let find = |configurations: Configurations, _: &Asked| async move {
        let found = blocking(move || configurations.segments()).await?;
        Ok::<_, JsonError>(Found::Some(found))
    };
    wait_for(configurations(&app)?, &machine, asked, find)
        .await
        .map(|answer| answer.unwrap_or_else(|tagged| file(&tagged, "application/json")))
}

/// The answer to a machine whose secret no longer counts.
fn replaced() -> JsonError {
    let reason = "the secret of this machine was replaced";
    JsonError(StatusCode::UNAUTHORIZED, reason.to_owned())
}

/// What there is for a machine.
enum Found {
    /// This, which the machine may have.
    Some(Arc<Tagged>),
    /// Nothing is configured.
    Nothing,
    /// What the machine has.
    Known,
}

/// Waits until `find` finds what the machine does not have, the time is over, or the machines of the
/// AS are to ask again. Returns what was found, or the answer that there is nothing (new). A machine
/// whose secret was replaced meanwhile gets neither.
async fn wait_for<F: Future<Output = Result<Found, JsonError>>>(
    configurations: &Configurations,
    machine: &Machine,
    asked: Asked,
    find: impl Fn(Configurations, &Asked) -> F,
) -> Result<Result<Response, Arc<Tagged>>, JsonError> {
    let coordinator = configurations.coordinator();
    let isd_as = machine.isd_as;
    let mut state = coordinator.subscribe();
    let roll_call = coordinator.roll_call(isd_as);
    let mut epoch = configurations.subscribe();
    loop {
        state.mark_unchanged();
        epoch.mark_unchanged();
        let found = find(configurations.clone(), &asked).await;
        if !coordinator.is_host(isd_as, &machine.secret) {
            return Err(replaced());
        }
        let unchanged = match found? {
            Found::Some(tagged) if !asked.has(&tagged.tag) => return Ok(Err(tagged)),
            Found::Nothing if !asked.has(NOTHING) => {
                return Ok(Ok(empty(StatusCode::NO_CONTENT, Some(NOTHING))));
            }
            Found::Nothing => StatusCode::NO_CONTENT,
            Found::Some(_) | Found::Known => StatusCode::NOT_MODIFIED,
        };
        if coordinator.roll_call(isd_as) != roll_call {
            return Ok(Ok(empty(unchanged, asked.tag.as_deref())));
        }
        tokio::select! {
            Ok(()) = state.changed() => {}
            Ok(()) = epoch.changed() => {}
            () = sleep_until(asked.until) => {
                return Ok(Ok(empty(unchanged, asked.tag.as_deref())));
            }
        }
    }
}

fn empty(status: StatusCode, tag: Option<&str>) -> Response {
    with_tag(status, tag, Body::empty())
}

fn file(tagged: &Tagged, kind: &'static str) -> Response {
    let body = Body::from(tagged.bytes.clone());
    let mut response = with_tag(StatusCode::OK, Some(&tagged.tag), body);
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

pub(super) fn with_tag(status: StatusCode, tag: Option<&str>, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
