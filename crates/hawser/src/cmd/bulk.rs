//! What the commands of bulk transfer have in common: addresses, options, keys.

pub mod display;
pub mod report;

use std::pin::pin;
use std::str::FromStr;

use hawser_bulk::keys::{self, Code, Known};
use hawser_bulk::{Algorithm, Node, PathOptions, Request, TransferOptions, Trust, transfer};
use hawser_endhost::ScionAddr;

use hawser_quic::PeerKey;

use tokio::sync::mpsc::unbounded_channel;

use self::display::Display;
use self::report::Report;
use super::key::KeyFileArgs;
use super::network::HostArgs;
use super::policy::{self, PolicyArgs};
use super::select::SelectArgs;
use super::{print, process};
use crate::failure::Failure;

/// A server, and a path in its folder: `1-ff00:0:111,10.0.2.1:31000/data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The server's address.
    pub server: ScionAddr,
    /// Relative to the server's folder; empty for the folder itself.
    pub name: String,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (server, name) = text.split_once('/').unwrap_or((text, ""));
        let server = server.parse().map_err(|_| {
            format!(
                "{text:?} is not a destination: write for example 1-ff00:0:111,10.0.2.1:31000/data"
            )
        })?;
        Ok(Self {
            server,
            name: name.trim_end_matches('/').to_owned(),
        })
    }
}

/// Transfers `request`, called `name`, to or from `place`, shows that, and prints the report; `done` is
/// what was done with the bytes, for people.
pub fn run(
    client: &ClientArgs,
    host: &HostArgs,
    place: &Place,
    (request, name, done): (Request, &str, &str),
) -> Result<(), Failure> {
    let options = client.options()?;
    let identity = client.key.file()?.open()?;
    process::runtime()?.block_on(async {
        let node = Node::bind(host.join().await?, None, identity)?;
        let (events, mut received) = unbounded_channel();
        let mut display = Display::new(name, client.verbose);
        let ended = {
            let mut transfer = pin!(transfer(&node, place.server, request, options, events));
            let mut interrupted = pin!(process::interrupted());
            loop {
                tokio::select! {
                    ended = &mut transfer => break ended.map_err(Failure::from),
                    Some(event) = received.recv() => display.show(&event),
                    signal = &mut interrupted => {
                        signal?;
                        let text = "interrupted: the same command continues from what has arrived";
                        break Err(Failure::job(text));
                    }
                }
            }
        };
        display.clear();
        node.close().await;
        let report = Report::new(&ended?);
        match client.json {
            true => print::json(&report)?,
            false => report.print(name, done),
        }
        Ok(())
    })
}

/// How a transfer to or from a server is done.
#[derive(clap::Args)]
pub struct ClientArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Rate control of every path on which this side sends [default: auto]
    #[arg(long, value_name = "ALGORITHM")]
    pub congestion: Option<Algorithm>,
    /// The server's key, as `hawser receive` prints it; may be given several times. Otherwise the keys
    /// in hawser/known_hosts of the user's configuration folder count
    #[arg(long, value_name = "KEY")]
    pub server_key: Vec<PeerKey>,
    /// The code that `hawser receive --once` prints, in place of keys
    #[arg(long, value_name = "CODE", conflicts_with = "server_key")]
    pub code: Option<Code>,
    /// Trust whatever server answers
    #[arg(long, conflicts_with_all = ["server_key", "code"])]
    pub any_server: bool,
    #[command(flatten)]
    pub key: KeyFileArgs,
    /// Report the reason for every path, also for those that are not used
    #[arg(long, short)]
    pub verbose: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// The options of the transfer.
    pub fn options(&self) -> Result<TransferOptions, Failure> {
        Ok(TransferOptions {
            paths: PathOptions {
                select: self.select.read()?,
                subflows: self.select.most(),
                policy: policy::read(&self.policy)?,
                ..PathOptions::default()
            },
            algorithm: self.congestion.unwrap_or_default(),
            server: match &self.code {
                _ if self.any_server => Trust::Any,
                Some(code) => Trust::Code(code.clone()),
                None => {
                    let known = Known::new(keys::folder()?.join(Known::FILE));
                    Trust::Known(known.with_keys(self.server_key.iter().copied()))
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_have_an_address_and_a_name() {
        let read = |text: &str| text.parse::<Place>().map(|place| place.name);
        assert_eq!(read("1-ff00:0:111,10.0.2.1:31000"), Ok(String::new()));
        assert_eq!(read("1-ff00:0:111,10.0.2.1:31000/a/b/"), Ok("a/b".into()));
        assert_eq!(read("1-ff00:0:111,[fd00::1]:31000/a"), Ok("a".into()));
        for wrong in ["", "data", "10.0.2.1:31000/a", "1-ff00:0:111,10.0.2.1/a"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
