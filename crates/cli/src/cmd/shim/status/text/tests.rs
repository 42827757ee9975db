use serde_json::json;

use super::*;

const NOW: u64 = 1_000_000_000;

fn shown(status: &StatusReport, explain: bool) -> String {
    let shown = Shown {
        explain,
        now_ms: NOW,
    };
    lines(status, &shown, Paint::none()).join("\n")
}

fn status() -> StatusReport {
    let path = |lane: u64, state: &str| {
        json!({
            "lane": lane, "slot": lane, "fingerprint": format!("1f3a2b4{lane}"), "state": state,
            "interfaces": ["1-ff00:0:1#1", "1-ff00:0:2#2", "1-ff00:0:2#3", "1-ff00:0:4#1"],
            "rtt_ms": 20.34, "datagram_bytes": 1392, "stream_bytes": 0, "sent_bytes": 1, "sent_packets": 1,
            "received_bytes": 1, "received_packets": 1, "dropped_packets": 0,
            "rejected_packets": 2, "sent_mbit": 12.34, "received_mbit": 0.04, "retransmits": 5,
        })
    };
    let subflow = |slot: u8| {
        json!({
            "id": slot, "slot": slot, "path": format!("1f3a2b4{slot}"), "state": "open",
            "rtt_ms": 21.0, "congestion_window_bytes": 1, "sent_bytes": 16_777_216,
            "received_bytes": 512, "sent_mbit": 4.0, "received_mbit": 0.0, "retransmits": 3,
        })
    };
    let connection = |role: &str, peer: &str| {
        json!({
            "id": 1, "peer": peer, "address": "fd00::", "role": role,
            "carrier": "mptcp", "source": "10.0.1.1:40312", "destination": "10.1.0.1:443", "age_ms": 12_345,
            "sent_bytes": 33_554_432, "received_bytes": 1024, "reinjected_bytes": 0,
            "sent_mbit": 8.0, "received_mbit": null, "subflows": [subflow(1), subflow(2)],
            "error": null,
        })
    };
    let session = |role: &str, peer: &str| {
        json!({
            "peer": peer, "key": "SHA256:AbCdEfGhIjKlMn", "role": role, "address": "fd00::",
            "carrier": "mptcp", "paths": [path(1, "up"), path(2, "doubtful")],
            "failovers": { "count": 2, "latest": {
                "at_ms": NOW - 75_000, "slot": 2, "fingerprint": "77777777",
                "reason": "nothing comes back over it",
            } },
            "decisions": [
                { "fingerprint": "88888888", "verdict": "left", "reason": "limit of 2 paths reached" },
            ],
            "error": "an earlier one",
        })
    };
    let peer = "1-ff00:0:4,10.0.4.1:31800";
    let status = json!({
        "up": true, "uptime_ms": 7_500_000, "holder_uptime_ms": 7_500_000,
        "sessions": [session("client", peer)],
        "connections": [connection("client", peer)],
        "connections_ended": 17, "setups_failed": 1,
        "failures": [{ "at_ms": NOW - 3000, "text": "10.0.1.1:5 to 10.1.0.1:80: \u{1b}[1mno" }],
    });
    serde_json::from_value(status).unwrap()
}

#[test]
fn sessions_have_their_paths_and_connections() {
    let expected = "\
up for 2h05m; 1 session, 1 connection open, 17 ended, 1 not set up

to 1-ff00:0:4,10.0.4.1:31800  key SHA256:AbCdEfGh  mptcp
  slot  path      state                out            in        rtt    again  datagram  dropped  rejected  hops
     1  1f3a2b41  up           12.3 Mbit/s   40.0 kbit/s    20.3 ms        5      1392        0         2  [1-ff00:0:1 1>2 1-ff00:0:2 3>1 1-ff00:0:4]
     2  1f3a2b42  doubtful     12.3 Mbit/s   40.0 kbit/s    20.3 ms        5      1392        0         2  [1-ff00:0:1 1>2 1-ff00:0:2 3>1 1-ff00:0:4]
  2 failovers, the latest 1m15s ago: slot 2, path 77777777: nothing comes back over it
  10.0.1.1:40312 > 10.1.0.1:443  mptcp  12 s  out 8.0 Mbit/s, 32.0 MiB  in -, 1.0 KiB
     1  1f3a2b41  open          4.0 Mbit/s       0 bit/s    21.0 ms        3  sent 16.0 MiB, received 512 B
     2  1f3a2b42  open          4.0 Mbit/s       0 bit/s    21.0 ms        3  sent 16.0 MiB, received 512 B

failed 3 s ago: 10.0.1.1:5 to 10.1.0.1:80: \\u{1b}[1mno";
    assert_eq!(shown(&status(), false), expected);
    let explained = shown(&status(), true);
    assert!(
        explained.contains("\n  88888888 left: limit of 2 paths reached\n"),
        "{explained}"
    );
}

#[test]
fn connections_are_shown_without_a_carrier() {
    let mut status = status();
    status.up = false;
    status.uptime_ms = None;
    status.sessions.clear();
    status.failures.clear();
    status.connections[0].peer = None;
    status.connections[0].subflows.clear();
    status.connections[0].error = Some("the connection is plain TCP, not MPTCP".into());
    let expected = "\
not up: its connections wait until `hawser shim up` runs again; 0 sessions, 1 connection open, 17 ended, 1 not set up

no session:
  10.0.1.1:40312 > 10.1.0.1:443  mptcp  12 s  the connection is plain TCP, not MPTCP";
    assert_eq!(shown(&status, false), expected);
}

#[test]
fn a_problem_of_the_holder_comes_first() {
    let mut status = status();
    let before = shown(&status, false);
    status.problem = Some("MPTCP's path manager has failed: \u{1b}no".into());
    let (head, rest) = before.split_once('\n').unwrap();
    let expected = format!("{head}\nMPTCP's path manager has failed: \\u{{1b}}no\n{rest}");
    assert_eq!(shown(&status, false), expected);
}

#[test]
fn shared_interfaces_and_lost_packets_are_notes() {
    let mut status = status();
    let before = shown(&status, false);
    let session = &mut status.sessions[0];
    session.shared = ["1-ff00:0:1#1", "1-ff00:0:2#2"]
        .map(|one| one.parse().unwrap())
        .into();
    session.unsent_packets = 1;
    let notes = [
        "  paths share 1-ff00:0:1#1, 1-ff00:0:2#2: there they take a share each",
        "  1 packet of its programs could not be sent on",
    ];
    let shown = shown(&status, false);
    let new: Vec<&str> = shown
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_eq!(new, notes);
}

#[test]
fn a_session_without_a_path_has_its_reason() {
    let mut status = status();
    status.connections.clear();
    let session = &mut status.sessions[0];
    session.paths.clear();
    session.key = None;
    session.role = Role::Server;
    session.failovers.latest = None;
    let text = shown(&status, false);
    let lines: Vec<&str> = text.lines().skip(2).take(2).collect();
    let expected = [
        "from 1-ff00:0:4,10.0.4.1:31800  not connected yet  mptcp",
        "  an earlier one",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn times_have_two_units() {
    let times = [999, 61_000, 7_500_000, 93_600_000].map(time);
    assert_eq!(times, ["0 s", "1m01s", "2h05m", "1d02h"]);
}
