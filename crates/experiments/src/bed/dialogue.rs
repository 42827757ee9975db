//! Round trips of single packets and bytes between hosts of the network.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use hawser_topology::IsdAsn;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::server::first_line;
use super::{Messages, TestBed, output, start};
use crate::error::{During, ExperimentError};
use crate::switches::WakeUps;

/// What `hawser ping --json` prints, as far as it is used here.
#[derive(Debug, Deserialize)]
struct Pinged {
    replies: Vec<Reply>,
}

#[derive(Debug, Deserialize)]
struct Reply {
    /// In milliseconds.
    round_trip_time: f64,
}

impl TestBed {
    /// Sends `count` SCMP echo requests to an AS's host, a millisecond apart. Returns how long the replies
    /// took, in seconds.
    ///
    /// # Errors
    /// When there is no reply.
    pub async fn ping(
        &self,
        from: IsdAsn,
        to: IsdAsn,
        count: u16,
    ) -> Result<Vec<f64>, ExperimentError> {
        let mut ping = Command::new(&self.program);
        ping.args(["ping", &format!("{to},{}", self.host(to)?), "--json"]);
        ping.args(["--interval", "1ms", "--count", &count.to_string()]);
        let messages = Messages::of(&mut ping)?;
        let text = output(&self.lab, from, ping, Some(messages)).await?;
        let pinged: Pinged = serde_json::from_str(&text).during("reading the report of ping")?;
        let replies = pinged.replies.iter();
        Ok(replies.map(|reply| reply.round_trip_time / 1e3).collect())
    }

    /// Sends bytes to a server of [`TestBed::serve_answers`], each once the one before it was answered: some
    /// that do not count, and then others. Returns how long these took, in seconds, and how often
    /// `processes` were woken meanwhile.
    ///
    /// # Errors
    /// When one is not answered.
    pub async fn dialogue(
        &self,
        from: IsdAsn,
        to: SocketAddr,
        (before, count): (u32, u32),
        processes: &[u32],
    ) -> Result<(Vec<f64>, u64), ExperimentError> {
        let mut command = Command::new(&self.program);
        command.args(["internal", "plain-dialogue", &to.to_string()]);
        command.args([before, count].map(|number| number.to_string()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let messages = Messages::of(&mut command)?;
        let mut child = start(&self.lab, from, command)?;
        let begin = child.stdin.take();
        let mut begin = begin.ok_or_else(|| ExperimentError::step("a program has no input"))?;
        let (ready, mut out) = first_line(child.stdout.take()).await?;
        if ready.is_empty() {
            return Err(ExperimentError::Step(messages.into_last()));
        }
        let wake_ups = WakeUps::new(processes.iter().copied());
        begin
            .write_all(b"\n")
            .await
            .during("beginning a dialogue")?;
        let mut times = String::new();
        let read = out.read_line(&mut times).await;
        read.during("reading round trips")?;
        // The connection is open until the program's input ends.
        let woken = wake_ups.count();
        drop(begin);
        child.wait().await.during("waiting for a program")?;
        match times.is_empty() {
            true => Err(ExperimentError::Step(messages.into_last())),
            false => Ok((
                serde_json::from_str(&times).during("reading round trips")?,
                woken,
            )),
        }
    }
}
