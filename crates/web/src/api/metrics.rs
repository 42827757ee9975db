//! Counters for Prometheus.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::extract::State;
use axum::response::Response;
use hawser_coordinator::{Action, Direction, Limits, LinkEnd, State as Everything};
use hawser_http::describe::NeedsUser;
use hawser_http::{JsonError, LimitLabels, LimitMetric, MetricKind, Metrics, prometheus};
use hawser_topology::IsdAsn;

use super::check;
use crate::app::App;
use crate::auth::Caller;
use crate::sampler::Use;

/// Counters for Prometheus
#[utoipa::path(
    get, path = "/metrics",
    responses(
        (status = 200, body = String, content_type = "text/plain",
            description = "hawser_limit_..., with the labels attachment_point, device, link, \
                direction and number"),
        NeedsUser,
    ),
)]
pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (state, current) = (app.coordinator().state(), app.live().current());
    let is_whole = |at| app.coordinator().deployment(at).error().is_none();
    Ok(prometheus(text(&state, &current.used, is_whole)))
}

/// The texts of a link's labels.
struct Link {
    attachment_point: String,
    device: String,
    /// The far end; empty while its address is not known.
    link: String,
    number: String,
}

impl Link {
    fn new(link: &hawser_coordinator::Link) -> Self {
        let LinkEnd { ip, port, .. } = link.user_as;
        let far = match (ip, port) {
            (Some(ip), Some(port)) => SocketAddr::new(ip, port).to_string(),
            (Some(ip), None) => ip.to_string(),
            (None, _) => String::new(),
        };
        Self {
            attachment_point: link.attachment_point.isd_as.to_string(),
            device: link.device.clone().unwrap_or_default(),
            link: far,
            number: link.id.to_string(),
        }
    }

    fn labels(&self, direction: Direction) -> LimitLabels<'_> {
        LimitLabels {
            attachment_point: &self.attachment_point,
            device: &self.device,
            link: &self.link,
            direction: match direction {
                Direction::Egress => "egress",
                Direction::Ingress => "ingress",
            },
            number: &self.number,
        }
    }
}

/// The metrics. `is_whole` says whether nothing of an attachment point is known to have failed.
fn text(state: &Everything, used: &[Use], is_whole: impl Fn(IsdAsn) -> bool) -> String {
    let mut text = Metrics::default();
    let links: BTreeMap<_, _> = (state.links.iter())
        .map(|(id, link)| (*id, Link::new(link)))
        .collect();
    let mut counted = |metric: LimitMetric, of: fn(&Use) -> u64| {
        let values = used.iter().filter_map(|one| {
            // One that has just been removed has no labels any more.
            Some((links.get(&one.link)?.labels(one.direction), of(one)))
        });
        metric.write(&mut text, values);
    };
    counted(LimitMetric::Bytes, |one| one.counters.bytes);
    counted(LimitMetric::Packets, |one| one.counters.packets);
    counted(LimitMetric::Drops, |one| one.counters.drops);
    counted(LimitMetric::Backlog, |one| one.counters.backlog);

    let mut rates = |metric: LimitMetric, of: fn(&hawser_coordinator::Link) -> Limits| {
        let values = state.links.iter().flat_map(|(id, link)| {
            let (limits, labels) = (of(link), links.get(id));
            let all = Direction::ALL.into_iter();
            all.filter_map(move |one| Some((labels?.labels(one), limits.of(one)?)))
        });
        metric.write(&mut text, values);
    };
    rates(LimitMetric::Rate, |link| link.wanted());
    rates(LimitMetric::Maximum, |link| link.maximum);

    let name = "hawser_limit_in_force";
    let help = "Whether an attachment point runs what is wanted.";
    let mut in_force = text.add(name, MetricKind::Gauge, help);
    for one in state.attachment_points.values() {
        let is_deployed = one.host.deployed == Some(one.host.version);
        let value = u8::from(is_whole(one.isd_as) && is_deployed);
        in_force.value(&[("attachment_point", &one.isd_as)], value);
    }
    text.into_text()
}
