//! The shim of hosts of the network, and TCP programs that use it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use hawser_topology::IsdAsn;
use serde::Deserialize;
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdout};

use super::server::first_line;
use super::{Messages, TestBed, output, start};
use crate::cpu::{self, Meter};
use crate::error::{During, ExperimentError};

/// What a shim is brought up with.
#[derive(Debug)]
pub struct ShimOptions<'a> {
    /// The host's AS.
    pub isd_as: IsdAsn,
    /// The file with the map.
    pub map: &'a Path,
    /// The file with the key; made if it is not there.
    pub key: &'a Path,
    /// Further arguments of `hawser shim up`.
    pub args: Vec<String>,
}

/// A shim that is up. Dropping it takes it down.
pub struct Shim<'a> {
    bed: &'a TestBed,
    isd_as: IsdAsn,
    name: String,
    carrier: Option<(Child, BufReader<ChildStdout>)>,
}

/// What `hawser shim status --json` prints, as far as it is used here.
#[derive(Debug, Deserialize)]
struct Status {
    sessions: Vec<Session>,
    failures: Vec<ShimFailure>,
}

#[derive(Debug, Deserialize)]
struct ShimFailure {
    text: String,
}

#[derive(Debug, Deserialize)]
struct Session {
    paths: Vec<ShimPath>,
}

/// A path that a shim uses.
#[derive(Debug, Deserialize)]
pub struct ShimPath {
    /// The largest datagram, in bytes of SCION/UDP payload.
    pub datagram_bytes: usize,
    /// Bytes sent, from the SCION/UDP payload on.
    pub sent_bytes: u64,
    /// Bytes of streams sent over its QUIC connection.
    pub stream_bytes: u64,
}

/// How long one connection took, in seconds: what `hawser internal plain-set-up` prints.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct SetUp {
    /// Until the first byte of an answer.
    pub answered: f64,
}

impl TestBed {
    /// Brings the shim of an AS's host up.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn shim_up(&self, options: &ShimOptions<'_>) -> Result<Shim<'_>, ExperimentError> {
        let isd_as = options.isd_as;
        let name = format!(
            "{}-{}",
            self.lab.name(),
            isd_as.to_string().replace(':', "-")
        );
        let mut up = Command::new(&self.program);
        up.args(["shim", "up", "--json", "--name", &name]);
        up.arg("--map")
            .arg(options.map)
            .arg("--key")
            .arg(options.key);
        up.args(&options.args);
        up.stdin(Stdio::null()).stdout(Stdio::piped());
        let messages = Messages::of(&mut up)?;
        let mut child = start(&self.lab, isd_as, up)?;
        let out = child.stdout.take();
        let mut shim = Shim {
            bed: self,
            isd_as,
            name,
            carrier: None,
        };
        let (line, out) = first_line(out).await?;
        if line.is_empty() {
            return Err(ExperimentError::Step(messages.into_last()));
        }
        shim.carrier = Some((child, out));
        Ok(shim)
    }

    /// Connects by TCP `count` times, one after the other.
    pub async fn set_up(
        &self,
        from: IsdAsn,
        to: SocketAddr,
        count: u16,
    ) -> Result<Vec<SetUp>, ExperimentError> {
        let mut command = Command::new(&self.program);
        command.args(["internal", "plain-set-up", &to.to_string()]);
        command.arg(count.to_string());
        let messages = Messages::of(&mut command)?;
        let text = output(&self.lab, from, command, Some(messages)).await?;
        serde_json::from_str(&text).during("reading how long connections took")
    }

    /// Bytes of frames that the limited links from one AS to another have carried.
    pub fn limited_bytes(&self, from: IsdAsn, to: IsdAsn) -> Result<u64, ExperimentError> {
        let status = self.lab.status().map_err(ExperimentError::step)?;
        let links = status.links.iter().filter_map(|link| {
            let ends = [(&link.a, &link.b), (&link.b, &link.a)];
            let mut ends = ends.into_iter();
            let end = ends.find(|(here, there)| (here.isd_as, there.isd_as) == (from, to));
            Some(end?.0.limit?.bytes)
        });
        Ok(links.sum())
    }
}

impl Shim<'_> {
    /// The paths that it uses.
    ///
    /// # Errors
    /// When it does not say, or a connection failed.
    pub async fn paths(&self) -> Result<Vec<ShimPath>, ExperimentError> {
        let mut command = Command::new(&self.bed.program);
        command.args(["shim", "status", "--json", "--name", &self.name]);
        let messages = Messages::of(&mut command)?;
        let text = output(&self.bed.lab, self.isd_as, command, Some(messages)).await?;
        let status: Status = serde_json::from_str(&text).during("reading the shim's status")?;
        if let Some(why) = status.failures.into_iter().next_back() {
            return Err(ExperimentError::Step(why.text));
        }
        let paths = status.sessions.into_iter().flat_map(|one| one.paths);
        Ok(paths.collect())
    }

    /// Begins to measure the processor time of its processes: the carrier, and the holder that outlives
    /// it. Their command lines name it, which others do not.
    pub fn meter(&self) -> Meter {
        Meter::new(cpu::with_argument(&self.name))
    }

    /// Its processes, found as [`Shim::meter`] finds them.
    pub fn processes(&self) -> Vec<u32> {
        cpu::with_argument(&self.name)
    }

    /// Takes it down.
    ///
    /// # Errors
    /// When that fails.
    pub async fn down(mut self) -> Result<(), ExperimentError> {
        let mut command = self.down_command();
        let messages = Messages::of(&mut command)?;
        output(&self.bed.lab, self.isd_as, command, Some(messages)).await?;
        if let Some((mut carrier, _)) = self.carrier.take() {
            // It ends with its holder, and says so by its exit code.
            carrier.wait().await.during("waiting for the shim")?;
        }
        Ok(())
    }

    fn down_command(&self) -> Command {
        let mut command = Command::new(&self.bed.program);
        command.args(["shim", "down", "--name", &self.name]);
        command
    }
}

impl Drop for Shim<'_> {
    fn drop(&mut self) {
        if self.carrier.take().is_none() {
            return;
        }
        // The holder outlives a carrier that is killed.
        let down = self.bed.lab.command(self.isd_as, self.down_command());
        let status = down.map(|mut down| down.status());
        if !matches!(&status, Ok(Ok(status)) if status.success()) {
            tracing::error!("the shim {} is not taken down: {status:?}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_of_the_status_is_read() {
        let text = r#"{"up": true, "connections": [], "failures": [{"at_ms": 1, "text": "x"}], "sessions": [
            {"peer": "1-ff00:0:110,10.0.1.1:31800", "paths": [{"slot": 1, "datagram_bytes": 1380,
            "sent_bytes": 12, "sent_packets": 1, "stream_bytes": 0}]}, {"paths": []}]}"#;
        let status: Status = serde_json::from_str(text).unwrap();
        assert_eq!(status.sessions[0].paths[0].datagram_bytes, 1380);
        assert_eq!(status.failures[0].text, "x");
        let set_up: SetUp = serde_json::from_str(r#"{"connected": 0.1, "answered": 0.2}"#).unwrap();
        assert_eq!(set_up.answered, 0.2);
    }
}
