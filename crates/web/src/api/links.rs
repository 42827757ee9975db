//! Links.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_coordinator::{Action, Direction, LinkId, NewCoreLink, NewLink};
use hawser_http::{JsonError, json, read_json};
use serde::{Deserialize, Deserializer};
use serde_json::json as value;

use super::check;
use crate::answers::{MAX_BODY, Query, bad, change, number};
use crate::app::App;
use crate::auth::Caller;
use crate::view::{LinkView, LinksView};

/// Longest wait for a change to get into force, in seconds.
const MAX_WAIT: u64 = 10;

/// Rates to set: absent to leave one as it is, `null` for none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rates {
    #[serde(default, deserialize_with = "given")]
    egress: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    ingress: Option<Option<u64>>,
}

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

/// The body of a change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    #[serde(default, deserialize_with = "some")]
    limit: Option<Rates>,
    #[serde(default, deserialize_with = "some")]
    maximum: Option<Rates>,
}

/// Rates by direction.
type ByDirection = Vec<(Direction, Option<u64>)>;

impl Patch {
    /// Those of the limit and of the maximum. `None` if neither is given, or one has no direction.
    fn rates(&self) -> Option<[ByDirection; 2]> {
        let given = [&self.limit, &self.maximum];
        let rates = given.map(|rates| rates.as_ref().map(Rates::list));
        let sets_nothing = rates.iter().flatten().any(Vec::is_empty);
        let is_empty = rates.iter().all(Option::is_none);
        (!sets_nothing && !is_empty).then(|| rates.map(Option::unwrap_or_default))
    }
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rates>, D::Error> {
    Rates::deserialize(deserializer).map(Some)
}

fn id(text: &str) -> Result<LinkId, JsonError> {
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

/// `GET /api/v1/links`
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

/// `GET /api/v1/links/{id}`
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    answer(&app, StatusCode::OK, id(&text)?)
}

/// `POST /api/v1/links`
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

/// `PATCH /api/v1/links/{id}?wait=SECONDS`
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Response, JsonError> {
    let id = id(&text)?;
    let wait = Query::new(query.as_deref(), &["wait"])?.number("wait")?;
    let patch: Patch = read_json(body, MAX_BODY).await?;
    let Some([limit, maximum]) = patch.rates() else {
        return Err(bad(
            "nothing to set: give `limit` or `maximum` with `egress` or `ingress`",
        ));
    };
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.set_rates(&actor, id, &maximum, &limit)).await?;
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

/// `DELETE /api/v1/links/{id}`
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

/// `DELETE /api/v1/core-links/{id}`
pub(crate) async fn remove_core(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, JsonError> {
    let id = id(&text)?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    change(move || coordinator.remove_core_link(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/core-links`
pub(crate) async fn add_core(
    State(app): State<App>,
    caller: Caller,
    body: Body,
) -> Result<Response, JsonError> {
    check(&caller, Action::Administer)?;
    let new: NewCoreLink = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.add_core_link(&actor, &new)).await?;
    Ok(json(StatusCode::CREATED, &link))
}

/// `GET /api/v1/core-links`
pub(crate) async fn list_core(
    State(app): State<App>,
    caller: Caller,
) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let links: Vec<_> = state.core_links.values().collect();
    Ok(json(StatusCode::OK, &value!({ "core_links": links })))
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
        ];
        let valid: Vec<_> = valid.iter().map(|text| text.as_bytes().to_vec()).collect();
        fuzz(&valid, |bytes| {
            let patch = serde_json::from_slice::<Patch>(bytes).ok();
            if let Some(rates) = patch.and_then(|patch| patch.rates()) {
                assert!((1..=4).contains(&rates.concat().len()));
            }
        });
        let patch: Patch = serde_json::from_slice(&valid[0]).unwrap();
        let limits = [
            (Direction::Egress, Some(1_000_000)),
            (Direction::Ingress, None),
        ];
        assert_eq!(patch.rates(), Some([limits.to_vec(), Vec::new()]));
        let patch: Patch = serde_json::from_slice(&valid[1]).unwrap();
        assert_eq!(patch.rates(), None);
    }
}
