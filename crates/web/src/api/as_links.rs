//! Links between user ASes, and peering links.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_coordinator::{Action, AsLink, EmulationEdit, LinkEdit, NewAsLink};
use hawser_http::describe::{Conflict, MakesChange, NamesOne, NeedsUser, NotFound, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::check;
use super::links::{Rates, given, id, some};
use super::openapi::OfLink;
use crate::answers::{MAX_BODY, bad, change};
use crate::app::App;
use crate::auth::Caller;

/// The answer with all of them.
#[derive(Serialize, ToSchema)]
pub(crate) struct AsLinks<'a> {
    as_links: Vec<&'a AsLink>,
}

/// The body of a change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AsLinkPatch, min_properties = 1)]
pub(crate) struct Patch {
    #[serde(default, deserialize_with = "some")]
    #[schema(nullable = false)]
    limit: Option<Rates>,
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

impl Patch {
    /// What is to be another. `None` if nothing is given, or a limit without a direction.
    fn edit(&self) -> Option<LinkEdit> {
        let limits = self.limit.as_ref().map(Rates::list);
        let sets_nothing = limits.as_ref().is_some_and(Vec::is_empty);
        let edit = LinkEdit {
            limits: limits.unwrap_or_default(),
            queue_us: self.queue_us,
            emulation: EmulationEdit {
                delay_us: self.delay_us,
                jitter_us: self.jitter_us,
                loss: self.loss,
            },
            ..LinkEdit::default()
        };
        (!sets_nothing && !edit.is_empty()).then_some(edit)
    }
}

/// The links between user ASes, and the peering links
#[utoipa::path(
    get, path = "/api/v1/as-links", operation_id = "list_as_links",
    responses((status = 200, description = "The links", body = AsLinks), NeedsUser),
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let state = app.coordinator().state();
    let as_links = state.as_links.values().collect();
    Ok(json(StatusCode::OK, &AsLinks { as_links }))
}

/// Add a link between two user ASes, or a peering link (administrators)
#[utoipa::path(
    post, path = "/api/v1/as-links", operation_id = "add_as_link",
    request_body = NewAsLink,
    responses(
        (status = 201, description = "The link", body = AsLink),
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
    let new: NewAsLink = read_json(body, MAX_BODY).await?;
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.add_as_link(&actor, &new)).await?;
    Ok(json(StatusCode::CREATED, &link))
}

/// Change a link between user ASes or a peering link: limit, queue, delay, jitter, loss (administrators)
///
/// What is absent stays as it is.
#[utoipa::path(
    patch, path = "/api/v1/as-links/{id}", operation_id = "change_as_link",
    request_body = Patch,
    params(OfLink),
    responses(
        (status = 200, description = "The link", body = AsLink),
        NeedsUser, ReadsBody, NamesOne, MakesChange,
    ),
)]
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    let id = id(&text)?;
    let patch: Patch = read_json(body, MAX_BODY).await?;
    let Some(edit) = patch.edit() else {
        return Err(bad(
            "nothing to set: give `limit` with `egress` or `ingress`, `queue_us`, `delay_us`, `jitter_us` or \
             `loss`",
        ));
    };
    let (coordinator, actor) = (app.coordinator().clone(), caller.actor());
    let link = change(move || coordinator.edit_as_link(&actor, id, &edit)).await?;
    Ok(json(StatusCode::OK, &link))
}

/// Remove a link between user ASes or a peering link (administrators)
#[utoipa::path(
    delete, path = "/api/v1/as-links/{id}", operation_id = "remove_as_link",
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
    change(move || coordinator.remove_as_link(&actor, id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::*;

    #[test]
    fn any_body_is_read_or_refused() {
        let valid = br#"{"limit":{"egress":1000000},"queue_us":null,"loss":0.5}"#.to_vec();
        fuzz(&[valid], |bytes| {
            let patch = serde_json::from_slice::<Patch>(bytes).ok();
            if let Some(edit) = patch.and_then(|patch| patch.edit()) {
                assert!(!edit.is_empty() && edit.maxima.is_empty());
            }
        });
    }
}
