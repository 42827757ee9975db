//! Measurements of speed: carriers and axes run, and report what they carried.

use serde_json::Value;

use crate::support::As;
use crate::transfer::report;

/// The median goodput and the processor time of all processes of a row, which must be there.
fn figures(row: &Value) -> (f64, f64) {
    assert_eq!(row["failure"], Value::Null, "{row}");
    let cpu = &row["cpu_per_gb"];
    let all = ["sender", "receiver"].map(|side| cpu[side].as_f64().unwrap());
    (row["gbit"].as_f64().unwrap(), all.iter().sum())
}

#[test]
fn carriers_are_compared_on_a_course() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("throughput.svg");
    let mut args = vec!["bench", "throughput", "--repeat", "1", "--size", "8MiB"];
    args.extend(["--no-offload", "--json", "--plot", figure.to_str().unwrap()]);
    let carriers = "udp,tls,torrent-ip,scion,quic,torrent-1,torrent-2";
    args.extend(["--only", carriers]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|r| r["carrier"].as_str().unwrap())
        .collect();
    assert_eq!(names.join(","), carriers);
    for row in rows {
        assert_eq!(
            (&row["routers"], &row["offload"]),
            (&2.into(), &false.into())
        );
        let (gbit, cpu) = figures(row);
        assert!(gbit > 0.0 && cpu > 0.0, "{row}");
    }
    assert_eq!(rows[6]["paths"], 2);
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn downloads_are_compared_as_they_grow() {
    let mut args = vec![
        "bench", "scale", "--repeat", "1", "--size", "8MiB", "--json",
    ];
    args.extend(["--only", "peers"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    let peers: Vec<_> = rows
        .iter()
        .map(|row| row["peers"].as_u64().unwrap())
        .collect();
    assert_eq!(peers, [4, 16]);
    let (_, base) = figures(&table["base"]);
    for row in rows {
        let ratio = row["ratio"].as_f64().unwrap();
        assert!((ratio - figures(row).1 / base).abs() < 1e-9, "{row}");
        assert_eq!(row["flat"], (ratio - 1.0).abs() <= 0.15, "{row}");
    }
}

#[test]
fn bulk_transfer_is_measured_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("distance.svg");
    let mut args = vec!["bench", "bulk-distance", "--repeat", "1", "--time", "2s"];
    args.extend(["--rate", "50mbit", "--loss", "0.1%", "--json"]);
    args.extend(["--only", "hawser-send,hawser-quic"]);
    args.extend(["--plot", figure.to_str().unwrap()]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{table}");
    for row in rows {
        assert_eq!(row["failure"], Value::Null, "{row}");
        let share = row["share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.05, "{row}");
        assert_eq!(row["over_time_mbit"].as_array().unwrap().len(), 4);
    }
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}

#[test]
fn bulk_transfer_is_measured_beside_congestion() {
    let mut args = vec!["bench", "bulk-congested", "--repeat", "1", "--time", "3s"];
    args.extend(["--rate", "50mbit", "--json"]);
    args.extend(["--variant", "hawser-beside-udp"]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let row = &table["rows"][0];
    assert_eq!(row["failure"], Value::Null, "{row}");
    let run = &row["runs"][0];
    let load = run["load_mbit"].as_f64().unwrap();
    assert!((load - 0.82 * 50.0).abs() < 0.5, "{run}");
    let share = run["overall_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.05, "{run}");
    let over_time = &row["over_time"]["total_mbit"];
    assert_eq!(over_time.as_array().unwrap().len(), 15);
}

#[test]
fn tcp_programs_are_measured_over_several_paths() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("mptcp.svg");
    let mut args = vec!["bench", "mptcp", "--repeat", "1", "--time", "2s", "--json"];
    args.extend(["--only", "mptcp,quic", "--paths", "2"]);
    args.extend(["--plot", figure.to_str().unwrap()]);
    let Some(table) = report(&As::default(), &args) else {
        return;
    };
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{table}");
    for row in rows {
        let is_shim = row["carrier"] == "mptcp";
        if is_shim && !rustix::process::geteuid().is_root() {
            assert_ne!(row["failure"], Value::Null, "{row}");
            continue;
        }
        assert_eq!(row["failure"], Value::Null, "{row}");
        let share = row["share"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.05, "{row}");
        // Both links carried frames: one alone has 20 Mbit/s.
        assert!(row["throughput_mbit"].as_f64().unwrap() < 42.0, "{row}");
        assert!(row["overhead"].as_f64().unwrap() > 0.0, "{row}");
    }
    let headers = table["headers"].as_array().unwrap();
    let frames = headers.iter().map(|row| &row["frame"]);
    assert!(frames.into_iter().all(|frame| *frame == 1514), "{table}");
    assert!(std::fs::read_to_string(figure).unwrap().starts_with("<svg"));
}
