//! Links.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{
    Action, Direction, EmulationEdit, LinkEdit, LinkId, NewLink, rate_schema,
};
use hawser_http::describe::{Conflict, MakesChange, NamesOne, NeedsUser, NotFound, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::check;
use super::openapi::OfLink;
use crate::answers::{MAX_BODY, Query, bad, change, number};
use crate::app::App;
use crate::auth::Caller;
use crate::view::{LinkView, LinksView};

/// Longest wait for a change to get into force, in seconds.
const MAX_WAIT: u64 = 10;

/// Rates to set: absent to leave one as it is, `null` for none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SomeLimits, min_properties = 1)]
pub(crate) struct Rates {
    #[serde(default, deserialize_with = "given")]
    #[schema(schema_with = rate_schema)]
    egress: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(schema_with = rate_schema)]
    ingress: Option<Option<u64>>,
}

/// A value that is given, also as `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(deserializer).map(Some)
}

impl Rates {
    fn list(&self) -> ByDirection {
        let all = [
            (Direction::Egress, self.egress),
            (Direction::Ingress, self.ingress),
        ];
        all.into_iter()
            .filter_map(|(direction, rate)| Some((direction, rate?)))
            .collect()
    }
}

/// The body of a change of a link of any kind.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LinkPatch, min_properties = 1)]
pub(crate) struct Patch {
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false)]
    limit: Option<Rates>,
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false)]
    maximum: Option<Rates>,
    /// Longest wait of a packet in the queue of each limit, in microseconds; `null` for the usual one.
    #[serde(default, deserialize_with = "given")]
    #[schema(maximum = 3600000000u64)]
    queue_us: Option<Option<u64>>,
    /// Added delay in each direction, in microseconds.
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false, maximum = 3600000000u64)]
    delay_us: Option<u64>,
    /// Largest difference of a packet's delay from that, above or below, in microseconds.
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false, maximum = 3600000000u64)]
    jitter_us: Option<u64>,
    /// Fraction of packets lost in each direction.
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false, minimum = 0, maximum = 1)]
    loss: Option<f64>,
}

/// Rates by direction.
type ByDirection = Vec<(Direction, Option<u64>)>;

impl Patch {
    /// What is to be another. Refused if nothing is given, or a limit or maximum without a direction.
    pub(super) fn edit(&self) -> Result<LinkEdit, JsonError> {
        let given = [&self.limit, &self.maximum];
        let rates = given.map(|rates| rates.as_ref().map(Rates::list));
        let sets_nothing = rates.iter().flatten().any(Vec::is_empty);
        let [limits, maxima] = rates.map(Option::unwrap_or_default);
        let edit = LinkEdit {
            maxima,
            limits,
            queue_us: self.queue_us,
            emulation: EmulationEdit {
                delay_us: self.delay_us,
                jitter_us: self.jitter_us,
                loss: self.loss,
            },
        };
        if sets_nothing || edit.is_empty() {
            return Err(bad(
                "nothing to set: give `limit` or `maximum` with `egress` or `ingress`, `queue_us`, `delay_us`, \
                 `jitter_us` or `loss`",
            ));
        }
        Ok(edit)
    }
}

/// A value that is given, which is not `null`.
fn some<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

pub(super) fn id(text: &str) -> Result<LinkId, JsonError> {
    number("link", text).map(LinkId)
}

fn unknown(id: LinkId) -> JsonError {
    JsonError(StatusCode::NOT_FOUND, format!("there is no link {id}"))
}

fn answer(app: &App, status: StatusCode, id: LinkId) -> Result<Response, JsonError> {
    let state = app.coordinator().state();
    let link = state.links.get(&id).ok_or_else(|| unknown(id))?;
    Ok(json(status, &LinkView::new(app, &state, link)))
}

/// All links, with an ETag
#[utoipa::path(
    get, path = "/api/v1/links", operation_id = "list_links",
    params(
        ("If-None-Match" = Option<String>, Header, nullable = false,
            description = "The ETag of what one has."),
    ),
    responses(
        (status = 200, description = "The links", body = LinksView, headers(("ETag" = String))),
        (status = 304, headers(("ETag" = String)),
            description = "Nothing has changed since If-None-Match"),
        NeedsUser,
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let failed =
        |error: serde_json::Error| JsonError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    // The revision is read first: what is newer in the answer is then written again.
    let revision = *app.coordinator().subscribe().borrow();
    let write = || {
        let state = app.coordinator().state();
        serde_json::to_string(&LinksView::new(&app, &state, revision)).map(|text| text + "\n")
    };
    let body = app.links().of(revision, write).map_err(failed)?;
    // Revisions begin anew with each process.
    let tag = format!("\"{}-{revision}\"", app.instance());
    let known = headers.get(header::IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let kind = (header::CONTENT_TYPE, "application/json".to_owned());
    Ok(([kind, (header::ETAG, tag)], body).into_response())
}

/// One link
#[utoipa::path(
    get, path = "/api/v1/links/{id}", operation_id = "show_link",
    params(OfLink),
    responses((status = 200, description = "The link", body = LinkView), NeedsUser, NamesOne),
)]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    answer(&app, StatusCode::OK, id(&text)?)
}

/// Add a link (administrators)
#[utoipa::path(
    post, path = "/api/v1/links", operation_id = "add_link",
    request_body = NewLink,
    responses(
        (status = 201, description = "The link", body = LinkView),
        NeedsUser, ReadsBody, MakesChange,
        (status = 404, response = NotFound),
        (status = 409, response = Conflict),
    ),
)]
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewLink = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.add_link(&actor, new)).await?;
    answer(&app, StatusCode::CREATED, link.id)
}

/// Change a link: limits, maxima, queue, delay, jitter, loss
///
/// Limits are for administrators and the owner of the user AS, all else for administrators. What is absent
/// stays as it is.
#[utoipa::path(
    patch, path = "/api/v1/links/{id}", operation_id = "set_link_rates",
    request_body = Patch,
    params(
        OfLink,
        ("wait" = Option<u64>, Query, maximum = 18446744073709551615u64,
            description = "Longest wait until it is in force, in seconds; at most 10, and 0 when \
                absent."),
    ),
    responses(
        (status = 200, body = LinkView,
            description = "The link; `in_force` and `error` say what became of it within `wait`"),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
    ),
)]
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, JsonError> {
    let id = id(&text)?;
    let wait = Query::new(query.as_deref(), &["wait"])?.number("wait")?;
    let edit = read_json::<Patch>(body, MAX_BODY).await?.edit()?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.edit_link(&actor, id, &edit)).await?;
    if let Some(wait) = wait {
        let wait = Duration::from_secs(wait.min(MAX_WAIT));
        let at = link.attachment_point.isd_as;
        let state = app.coordinator().state();
        if let Some(host) = state.host(at) {
            // The answer says whether it is in force, and why not.
            let deployed = app.coordinator().deployed(at, host.version);
            let _ = tokio::time::timeout(wait, deployed).await;
        }
    }
    answer(&app, StatusCode::OK, id)
}

/// Remove a link (administrators)
#[utoipa::path(
    delete, path = "/api/v1/links/{id}", operation_id = "remove_link",
    params(OfLink),
    responses((status = 204, description = "It is removed"), NeedsUser, NamesOne, MakesChange),
)]
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_link(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::*;

    #[test]
    fn any_body_is_read_or_refused() {
        let valid = [
            r#"{"limit":{"egress":1000000,"ingress":null}}"#,
            r#"{"maximum":{"ingress":0},"limit":{}}"#,
            r#"{"queue_us":null,"delay_us":20000,"jitter_us":1000,"loss":0.01}"#,
        ];
        let valid: Vec<_> = valid.iter().map(|text| text.as_bytes().to_vec()).collect();
        fuzz(&valid, |bytes| {
            let patch = serde_json::from_slice::<Patch>(bytes).ok();
            if let Some(Ok(edit)) = patch.map(|patch| patch.edit()) {
                assert!(!edit.is_empty());
                assert!(edit.limits.len() <= 2 && edit.maxima.len() <= 2);
            }
        });
        let patch: Patch = serde_json::from_slice(&valid[0]).unwrap();
        let limits = [
            (Direction::Egress, Some(1_000_000)),
            (Direction::Ingress, None),
        ];
        let edit = LinkEdit {
            limits: limits.to_vec(),
            ..LinkEdit::default()
        };
        assert_eq!(patch.edit().ok(), Some(edit));
        let patch: Patch = serde_json::from_slice(&valid[1]).unwrap();
        assert!(patch.edit().is_err());
        let patch: Patch = serde_json::from_slice(&valid[2]).unwrap();
        let edit = LinkEdit {
            queue_us: Some(None),
            emulation: EmulationEdit {
                delay_us: Some(20_000),
                jitter_us: Some(1000),
                loss: Some(0.01),
            },
            ..LinkEdit::default()
        };
        assert_eq!(patch.edit().ok(), Some(edit));
        assert!(serde_json::from_str::<Patch>(r#"{"delay_us":null}"#).is_err());
    }
}
