//! A TCP flow of the kernel over a link of the network, beside a download.

use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde_json::Value;
use tokio::process::Child;

use super::{Messages, Stage, output, start};
use crate::error::{During, ExperimentError};
use crate::experiment::Rival;
use crate::samples::Samples;

/// `iperf3` does not report when it listens.
const LISTENS: Duration = Duration::from_millis(500);

/// A rival whose server listens.
pub struct Ready {
    _server: Child,
    client: Command,
    from: IsdAsn,
}

impl Stage {
    /// Prepares a TCP flow that lasts `seconds`, rounded up.
    pub async fn prepare_rival(
        &self,
        rival: &Rival,
        seconds: f64,
    ) -> Result<Ready, ExperimentError> {
        let (from, to) = rival.ends;
        let there = self.host(to)?.to_string();
        let mut server = Command::new("iperf3");
        server.args(["--server", "--one-off", "--bind", &there]);
        server.stdin(Stdio::null()).stdout(Stdio::null());
        let server = start(&self.lab, to, server)
            .map_err(|e| ExperimentError::Step(format!("{e}: install the program iperf3")))?;
        tokio::time::sleep(LISTENS).await;
        let mut client = Command::new("iperf3");
        client.args(["--client", &there, "--json"]);
        client.args(["--congestion", rival.algorithm]);
        client.args(["--time", &seconds.ceil().to_string()]);
        Ok(Ready {
            _server: server,
            client,
            from,
        })
    }

    /// Runs a prepared flow to its end. Returns what it carried, by seconds since its start.
    pub async fn run_rival(&self, mut ready: Ready) -> Result<Samples, ExperimentError> {
        let messages = Messages::of(&mut ready.client)?;
        let text = output(&self.lab, ready.from, ready.client, Some(messages)).await?;
        let json: Value = serde_json::from_str(&text).during("reading the report of iperf3")?;
        carried(&json).ok_or_else(|| ExperimentError::step("iperf3 reports no intervals"))
    }
}

/// The bytes of a flow over time, in a report of `iperf3`.
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
}
