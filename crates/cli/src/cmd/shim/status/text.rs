//! The status for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_shim::carrier::{PathReport, PathState, SessionReport};
use hawser_shim::holder::{ConnectionReport, SubflowReport};
use hawser_shim::link::Role;
use hawser_shim::status::StatusReport;

use crate::cmd::path_text;
use crate::format;
use crate::out::plain;
use crate::paint::Paint;

/// Characters of a key that are shown, behind `SHA256:`.
const KEY: usize = 15;

/// What is shown.
pub struct Shown {
    /// Whether why each path was taken or left is.
    pub explain: bool,
    /// The time now: milliseconds since 1970.
    pub now_ms: u64,
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// The lines.
pub fn lines(status: &StatusReport, shown: &Shown, paint: Paint) -> Vec<String> {
    let connections = count(status.connections.len(), "connection");
    let state = match status.uptime_ms {
        Some(uptime) => format!("{} for {}", paint.good("up"), time(uptime)),
        None => format!(
            "{}: its connections wait until `hawser shim up` runs again",
            paint.bad("not up")
        ),
    };
    let mut lines = vec![format!(
        "{state}; {}, {connections} open, {} ended, {} not set up",
        count(status.sessions.len(), "session"),
        status.connections_ended,
        status.setups_failed,
    )];
    if let Some(problem) = &status.problem {
        lines.push(paint.bad(plain(problem)).to_string());
    }
    for session in &status.sessions {
        lines.push(String::new());
        lines.extend(self::session(status, session, shown, paint));
    }
    let mut others = status.connections.iter().filter(|one| one.peer.is_none());
    if let Some(first) = others.next() {
        lines.extend([String::new(), paint.header("no session:")]);
        for connection in std::iter::once(first).chain(others) {
            lines.extend(self::connection(connection));
        }
    }
    if !status.failures.is_empty() {
        lines.push(String::new());
    }
    for failure in &status.failures {
        let ago = time(shown.now_ms.saturating_sub(failure.at_ms));
        lines.push(format!("failed {ago} ago: {}", plain(&failure.text)));
    }
    lines
}

fn session(
    status: &StatusReport,
    session: &SessionReport,
    shown: &Shown,
    paint: Paint,
) -> Vec<String> {
    let toward = match session.role {
        Role::Client => "to",
        Role::Server => "from",
    };
    let key = match &session.key {
        Some(key) => format!("key {}", key.chars().take(KEY).collect::<String>()),
        None => "not connected yet".to_owned(),
    };
    let mut lines = vec![format!(
        "{toward} {}  {key}  {}",
        paint.header(plain(&session.peer)),
        session.carrier
    )];
    if !session.paths.is_empty() {
        lines.push(paint.key(columns([
            "slot", "path", "state", "out", "in", "rtt", "again", "datagram", "dropped",
            "rejected", "hops",
        ])));
    }
    lines.extend(session.paths.iter().map(|one| path(one, paint)));
    if let Some(latest) = &session.failovers.latest {
        let ago = time(shown.now_ms.saturating_sub(latest.at_ms));
        let path = latest.fingerprint.as_deref().unwrap_or("unknown");
        lines.push(format!(
            "  {}, the latest {ago} ago: slot {}, path {path}: {}",
            count_u64(session.failovers.count, "failover"),
            latest.slot,
            plain(&latest.reason)
        ));
    }
    if !session.shared.is_empty() {
        let shared = session.shared.iter().map(ToString::to_string);
        lines.push(format!(
            "  paths share {}: there they take a share each",
            shared.collect::<Vec<_>>().join(", ")
        ));
    }
    if session.unsent_packets > 0 {
        let packets = count_u64(session.unsent_packets, "packet");
        lines.push(format!("  {packets} of its programs could not be sent on"));
    }
    if let Some(error) = session.error.as_ref().filter(|_| session.paths.is_empty()) {
        lines.push(format!("  {}", paint.bad(plain(error))));
    }
    if shown.explain {
        lines.extend(session.decisions.iter().map(|one| {
            let reason = plain(&one.reason);
            format!("  {} {}: {reason}", one.fingerprint, one.verdict)
        }));
    }
    for connection in status.connections_of(session) {
        lines.extend(self::connection(connection));
    }
    lines
}

/// A row of the table of paths.
fn columns(cells: [&str; 11]) -> String {
    let [
        slot,
        path,
        state,
        out,
        into,
        rtt,
        again,
        datagram,
        dropped,
        rejected,
        hops,
    ] = cells;
    format!(
        "  {slot:>4}  {path:<8}  {state:<10}  {out:>12}  {into:>12}  {rtt:>9}  {again:>7}  \
         {datagram:>8}  {dropped:>7}  {rejected:>8}  {hops}"
    )
}

fn path(path: &PathReport, paint: Paint) -> String {
    let number = |value: u64| value.to_string();
    let slot = path
        .slot
        .map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    // Padded before it is painted: colours have no width.
    let state = format!("{:<10}", path.state.name());
    let state = match path.state {
        PathState::Up => paint.good(state),
        PathState::Connecting => state,
        PathState::Doubtful => paint.bad(state),
    };
    let (name, hops) = match path.plain_ip {
        Some(host) => ("plain IP", host.to_string()),
        None => (
            path.fingerprint.as_deref().unwrap_or("unknown"),
            path_text::hops(&path.interfaces, paint),
        ),
    };
    columns([
        &slot,
        name,
        &state,
        &rate(path.traffic.sent_mbit),
        &rate(path.traffic.received_mbit),
        &path.rtt_ms.map_or_else(|| "-".to_owned(), millis),
        &number(path.retransmits),
        &path.datagram_bytes.to_string(),
        &number(path.packets.dropped_packets),
        &number(path.packets.rejected_packets),
        &hops,
    ])
}

/// A connection, and its subflows.
fn connection(one: &ConnectionReport) -> Vec<String> {
    let (source, destination, age) = (one.source, one.destination, time(one.age_ms));
    let carrier = one.carrier;
    let mut lines = match &one.error {
        Some(error) => vec![format!(
            "  {source} > {destination}  {carrier}  {age}  {}",
            plain(error)
        )],
        None => vec![format!(
            "  {source} > {destination}  {carrier}  {age}  out {}, {}  in {}, {}",
            rate(one.traffic.sent_mbit),
            format::bytes(one.traffic.sent_bytes),
            rate(one.traffic.received_mbit),
            format::bytes(one.traffic.received_bytes),
        )],
    };
    lines.extend(one.subflows.iter().map(subflow));
    lines
}

fn subflow(one: &SubflowReport) -> String {
    let slot = one
        .slot
        .map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    let path = one.path.as_deref().unwrap_or("-");
    format!(
        "  {slot:>4}  {path:<8}  {:<10}  {:>12}  {:>12}  {:>9}  {:>7}  sent {}, received {}",
        one.state.name(),
        rate(one.traffic.sent_mbit),
        rate(one.traffic.received_mbit),
        millis(one.rtt_ms),
        one.retransmits,
        format::bytes(one.traffic.sent_bytes),
        format::bytes(one.traffic.received_bytes),
    )
}

/// A rate in Mbit/s; `-` until it is known.
fn rate(mbit: Option<f64>) -> String {
    mbit.map_or_else(|| "-".to_owned(), format::mbit)
}

fn millis(ms: f64) -> String {
    format!("{ms:.1} ms")
}

/// A time in the largest two units.
fn time(ms: u64) -> String {
    let seconds = Duration::from_millis(ms).as_secs();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes}m{:02}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{minutes:02}m"),
        (days, hours, _) => format!("{days}d{hours:02}h"),
    }
}

fn count(number: usize, what: &str) -> String {
    count_u64(number as u64, what)
}

/// `1 session`, `2 sessions`.
fn count_u64(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests;
