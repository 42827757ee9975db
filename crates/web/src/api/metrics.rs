//! Counters for Prometheus.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use hawser_coordinator::{Action, Direction, Limits, State as Everything};
use hawser_http::{JsonError, prometheus};
use hawser_topology::IsdAsn;

use super::check;
use crate::app::App;
use crate::auth::Caller;
use crate::sampler::Use;

/// `GET /metrics`
pub(crate) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, JsonError> {
    check(&caller, Action::Read)?;
    let (state, current) = (app.coordinator().state(), app.live().current());
    let is_whole = |at| app.coordinator().deployment(at).error().is_none();
    Ok(prometheus(text(&state, &current.used, is_whole)))
}

/// A metric of each link and direction.
fn family(text: &mut String, name: &str, kind: &str, help: &str, values: &[(u64, Direction, u64)]) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (link, direction, value) in values {
        let _ = writeln!(
            text,
            "{name}{{link=\"{link}\",direction=\"{direction}\"}} {value}"
        );
    }
}

/// The metrics. `is_whole` says whether nothing of an attachment point is known to have failed.
fn text(state: &Everything, used: &[Use], is_whole: impl Fn(IsdAsn) -> bool) -> String {
    let mut text = String::new();
    let counted = |of: fn(&Use) -> u64| {
        let values = used.iter().map(|one| (one.link.0, one.direction, of(one)));
        values.collect::<Vec<_>>()
    };
    let counter = "counter";
    let bytes = counted(|one| one.counters.bytes);
    let help = "Bytes that a link carried.";
    family(&mut text, "hawser_limit_bytes_total", counter, help, &bytes);
    let packets = counted(|one| one.counters.packets);
    let help = "Packets that a link carried.";
    family(
        &mut text,
        "hawser_limit_packets_total",
        counter,
        help,
        &packets,
    );
    let drops = counted(|one| one.counters.drops);
    let help = "Packets that a link's limit dropped.";
    family(&mut text, "hawser_limit_drops_total", counter, help, &drops);
    let backlog = counted(|one| one.counters.backlog);
    let help = "Bytes that wait at a link's limit.";
    family(
        &mut text,
        "hawser_limit_backlog_bytes",
        "gauge",
        help,
        &backlog,
    );

    let rates = |of: fn(&hawser_coordinator::Link) -> Limits| {
        let all = state.links.values().flat_map(|link| {
            let limits = of(link);
            let all = Direction::ALL.into_iter();
            all.filter_map(move |one| Some((link.id.0, one, limits.of(one)?)))
        });
        all.collect::<Vec<_>>()
    };
    let limits = rates(|link| link.wanted());
    let help = "Limit of a link, where it has one.";
    family(
        &mut text,
        "hawser_limit_rate_bits_per_second",
        "gauge",
        help,
        &limits,
    );
    let maxima = rates(|link| link.maximum);
    let help = "Maximum of a link, where it has one.";
    family(
        &mut text,
        "hawser_limit_maximum_bits_per_second",
        "gauge",
        help,
        &maxima,
    );

    let name = "hawser_limit_in_force";
    let help = "Whether an attachment point runs what is wanted.";
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for one in state.attachment_points.values() {
        let in_force =
            u8::from(is_whole(one.isd_as) && one.host.deployed == Some(one.host.version));
        let _ = writeln!(
            text,
            "{name}{{attachment_point=\"{}\"}} {in_force}",
            one.isd_as
        );
    }
    text
}
