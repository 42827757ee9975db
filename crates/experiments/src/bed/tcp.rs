//! TCP flows of the kernel between hosts of the network, by `iperf3`.

use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_topology::IsdAsn;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, socket};
use serde_json::Value;
use tokio::process::Child;

use super::{Messages, TestBed, output, start};
use crate::error::{During, ExperimentError};
use crate::samples::Samples;

/// `iperf3` does not report when it listens.
const LISTENS: Duration = Duration::from_millis(500);
/// Interval of measurements, in seconds: the shortest that `iperf3` takes.
const INTERVAL: &str = "0.1";
/// Where the kernel lists its congestion controls.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// How to get `iperf3`.
const REMEDY: &str = "install the program iperf3";

/// TCP flows that start together.
#[derive(Debug, Clone, Copy)]
pub struct Flows {
    /// The ASes of sender and receiver.
    pub ends: (IsdAsn, IsdAsn),
    /// Their congestion control, by the kernel's name.
    pub algorithm: &'static str,
    /// Their number.
    pub count: u16,
    /// How long they send, in seconds; rounded up.
    pub seconds: f64,
    /// The port of the receiver, which no other program there has.
    pub port: u16,
}

impl Flows {
    /// The port of `iperf3`.
    pub const PORT: u16 = 5201;
}

/// Flows whose receiver listens.
pub struct Ready {
    server: Child,
    client: Command,
    from: IsdAsn,
}

impl TestBed {
    /// Starts the receiver of flows.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] if `iperf3` is not installed.
    pub async fn prepare_tcp(&self, flows: &Flows) -> Result<Ready, ExperimentError> {
        if Command::new("iperf3").arg("--version").output().is_err() {
            return Err(ExperimentError::Missing(REMEDY));
        }
        let (from, to) = flows.ends;
        let (there, port) = (self.host(to)?.to_string(), flows.port.to_string());
        let mut server = Command::new("iperf3");
        server.args(["--server", "--one-off", "--json", "--interval", INTERVAL]);
        server.args(["--bind", &there, "--port", &port]);
        server.stdin(Stdio::null()).stdout(Stdio::piped());
        let server = start(&self.lab, to, server)?;
        tokio::time::sleep(LISTENS).await;
        let mut client = Command::new("iperf3");
        client.args(["--client", &there, "--port", &port]);
        client.args(["--congestion", flows.algorithm]);
        client.args(["--parallel", &flows.count.to_string()]);
        client.args(["--time", &flows.seconds.ceil().to_string()]);
        Ok(Ready {
            server,
            client,
            from,
        })
    }

    /// Runs prepared flows to their end. Returns what arrived of all together, by seconds since their
    /// start.
    pub async fn run_tcp(&self, mut ready: Ready) -> Result<Samples, ExperimentError> {
        let messages = Messages::of(&mut ready.client)?;
        let sent = output(&self.lab, ready.from, ready.client, Some(messages));
        sent.await?;
        let received = ready.server.wait_with_output();
        let received = received.await.during("reading the report of iperf3")?;
        let report: Value =
            serde_json::from_slice(&received.stdout).during("reading the report of iperf3")?;
        carried(&report).ok_or_else(|| ExperimentError::step("iperf3 reports no intervals"))
    }

    /// Lets the TCP of an AS's host have up to `bytes` in flight, and begin each flow without what it
    /// learned from others.
    pub async fn tune_tcp(&self, isd_as: IsdAsn, bytes: u64) -> Result<(), ExperimentError> {
        let settings = [
            ("tcp_rmem", format!("4096 131072 {bytes}")),
            ("tcp_wmem", format!("4096 16384 {bytes}")),
            ("tcp_no_metrics_save", "1".to_owned()),
        ];
        for (file, value) in settings {
            let mut command = Command::new("sh");
            command.args([
                "-c",
                "echo \"$1\" > \"/proc/sys/net/ipv4/$0\"",
                file,
                &value,
            ]);
            let messages = Messages::of(&mut command)?;
            output(&self.lab, isd_as, command, Some(messages)).await?;
        }
        Ok(())
    }

    /// The shortest of several round trips over plain IP.
    pub async fn plain_round_trip(
        &self,
        from: IsdAsn,
        to: IsdAsn,
    ) -> Result<Duration, ExperimentError> {
        let mut command = Command::new(&self.program);
        command.args(["internal", "plain-round-trip", &self.host(to)?.to_string()]);
        let messages = Messages::of(&mut command)?;
        let text = output(&self.lab, from, command, Some(messages)).await?;
        let seconds = serde_json::from_str(&text).during("reading the round trip")?;
        Duration::try_from_secs_f64(seconds).during("reading the round trip")
    }
}

/// Whether the kernel has a congestion control, by its name; loads it if this process may.
pub fn has_congestion_control(name: &str) -> bool {
    let listed = || {
        let list = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
        list.split_whitespace().any(|one| one == name)
    };
    // A privileged request loads the kernel's module; whether it did shows in the list.
    listed()
        || socket(AddressFamily::INET, SocketType::STREAM, None)
            .and_then(|socket| set_tcp_congestion(socket, name))
            .is_ok()
            && listed()
}

/// The bytes of all flows over time, in a report of `iperf3`.
fn carried(report: &Value) -> Option<Samples> {
    let mut bytes = 0.0;
    let mut points = vec![(0.0, 0.0)];
    for interval in report["intervals"].as_array()? {
        let sum = &interval["sum"];
        bytes += sum["bytes"].as_f64()?;
        points.push((sum["end"].as_f64()?, bytes));
    }
    (points.len() > 1).then_some(Samples(points))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn intervals_are_added_up() {
        let sum = |end, bytes| json!({"sum": {"end": end, "bytes": bytes}});
        let report = json!({"intervals": [sum(1.0, 1_000_000), sum(2.0, 3_000_000)]});
        let samples = carried(&report).unwrap();
        assert_eq!((samples.end(), samples.total()), (2.0, 4e6));
        assert!((samples.rate(1.0, 2.0) - 24.0).abs() < 1e-9);
        for wrong in [
            json!({}),
            json!({"intervals": []}),
            json!({"intervals": [{}]}),
        ] {
            assert!(carried(&wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn unknown_congestion_controls_are_not_there() {
        assert!(has_congestion_control("reno"));
        assert!(!has_congestion_control("no-such"));
    }
}
