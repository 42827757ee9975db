//! `hawser receive`: take what other hosts send, and share a folder with them.

mod tally;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_bulk::{
    Algorithm, Clients, Destination, Limit, Node, ServerEvent, ServerOptions, TransferEvent,
    XdpUse, check_shared, serve,
};
use hawser_endhost::ScionAddr;
use hawser_keys::{Allowed, Code};
use hawser_topology::{parse_rate, parse_retry};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::tally::{Incomplete, Tally, Transfer};
use super::bulk::metadata::MetadataArgs;
use super::bulk::report::{Report, mbit};
use super::bulk::sockets::{SocketArgs, XdpReport};
use super::bulk::spool::Spool;
use super::bulk::{RETRY, files};
use super::key::KeyFileArgs;
use super::network::{HostArgs, listen_address};
use super::trust::ServeArgs;
use super::{headings, print, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Most sessions at once by default.
const SESSIONS: u16 = 16;

#[derive(clap::Args)]
pub struct ReceiveArgs {
    #[command(flatten)]
    pub into: OutputArgs,
    #[command(flatten)]
    pub metadata: MetadataArgs,
    /// Let others fetch what is in this folder
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    #[command(flatten)]
    pub clients: ClientsArgs,
    /// End after this many transfers
    ///
    /// With exit code 1 if one of them failed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// How long a sender that was lost may take to continue, before its transfer counts as failed
    /// (--count, --once): 30s, 5m, 2h; 0 for no time
    #[arg(long, value_name = "TIME", default_value = RETRY, value_parser = parse_retry, help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub retry: Duration,
    /// Most transfers at once
    #[arg(long, value_name = "N", default_value_t = SESSIONS, value_parser = clap::value_parser!(u16).range(1..), help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub sessions: u16,
    /// Rate control of every path on which this side sends [default: auto]
    #[arg(long, value_name = "ALGORITHM", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub congestion: Option<Algorithm>,
    /// Most content per second: 100mbit, 2.5gbit
    ///
    /// That others send here, all together, and as much again that they fetch.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub key: KeyFileArgs,
    #[command(flatten)]
    pub sockets: SocketArgs,
    /// Print JSON
    ///
    /// One object when listening, and one for each transfer.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub host: HostArgs,
}

/// Where content goes.
#[derive(clap::Args)]
pub struct OutputArgs {
    /// The folder to write to; nothing is written outside of it
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Verify everything and write nothing, to measure all but the disk
    #[arg(long, conflicts_with = "output", help_heading = headings::RARE, hide_short_help = true)]
    pub discard: bool,
    /// Take one file, print it, and end
    ///
    /// It is printed on standard output once all of it is verified; everything else is printed on
    /// standard error.
    #[arg(long, conflicts_with_all = ["output", "discard", "share", "count", "json"])]
    pub stdout: bool,
}

/// Which hosts may connect.
#[derive(clap::Args)]
pub struct ClientsArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Make a code for one host, and end after its transfer
    ///
    /// The host that is given it with --code may connect, and no other. So it is, too, where no key is
    /// allowed.
    #[arg(long, conflicts_with_all = ["allow", "allow_any", "count"])]
    pub once: bool,
}

impl ClientsArgs {
    /// The hosts that may connect by their keys, and whether one may by a code in place of them:
    /// if that is requested, or nobody could connect otherwise.
    fn read(&self, count: Option<u64>) -> Result<(Clients, bool), Failure> {
        let nobody = || (Clients::allowed(Allowed::new(Vec::new())), true);
        if self.once {
            return Ok(nobody());
        }
        Ok(match self.serve.allowed()? {
            None => (Clients::any(), false),
            Some(allowed) if count.is_none() && allowed.keys()?.is_empty() => nobody(),
            Some(allowed) => (Clients::allowed(allowed), false),
        })
    }
}

/// Runs `hawser receive`.
pub fn run(args: ReceiveArgs) -> Result<(), Failure> {
    let identity = args.key.file()?.open()?;
    let (clients, by_code) = args.clients.read(args.count)?;
    let code = by_code.then(Code::generate).transpose()?;
    let spool = args.into.stdout.then(Spool::new).transpose()?;
    let folder = spool
        .as_ref()
        .map_or(args.into.output.as_path(), Spool::path);
    let receive = match args.into.discard {
        true => Destination::Discard,
        false => Destination::Folder {
            root: folder.to_owned(),
            name: PathBuf::new(),
        },
    };
    // Before anything is offered.
    let free = receive.check()?;
    args.share.as_deref().map(check_shared).transpose()?;
    let options = ServerOptions {
        clients,
        code: code.clone(),
        receive: Some(receive),
        share: args.share.clone(),
        take: args.metadata.choices(),
        sessions: args.sessions.into(),
        algorithm: args.congestion.unwrap_or_default(),
        limit: args.limit.map(|rate| Limit::new(rate, None)),
    };
    process::runtime()?.block_on(async {
        let host = args.host.join().await?;
        let listen = listen_address(args.clients.serve.listen.listen, &host)?;
        let node = args.sockets.bind(host, listen, identity)?;
        let interrupted = process::interrupted()?;
        offer(&args, &node, code.map(|code| code.to_string()), free)?;
        // `serve` bounds them.
        let (events, received) = unbounded_channel();
        let is_single = by_code || args.into.stdout;
        let wanted = args.count.or_else(|| is_single.then_some(1));
        let mut tally = Tally::new(wanted, by_code, args.retry);
        let ended = tokio::select! {
            () = serve(&node, options, events) => {
                Err(Failure::job("the sockets of this host were closed: nothing can be received"))
            }
            ended = count(&mut tally, received, &node, &args) => ended,
            () = interrupted => Ok(()),
        };
        node.close().await;
        ended?;
        tally.outcome()?;
        spool.map_or(Ok(()), |spool| spool.print())
    })
}

/// Prints where this host receives, and what a sender needs to know. `free` is the space in the folder
/// in bytes.
fn offer(
    args: &ReceiveArgs,
    node: &Node,
    code: Option<String>,
    free: Option<u64>,
) -> Result<(), Failure> {
    let (address, key) = (node.local_addr().to_string(), node.key().to_string());
    if args.json {
        let xdp = node.xdp().as_ref().map(XdpReport::new);
        let limit = args.limit.map(mbit);
        return print::json(&json!({
            "listening": address, "key": key, "code": code, "limit_mbit": limit,
            "free_bytes": free, "xdp": xdp,
        }));
    }
    let say = |line: fmt::Arguments<'_>| match args.into.stdout {
        // Content alone goes to standard output.
        true => errln!("{line}"),
        false => outln!("{line}"),
    };
    say(format_args!("receiving at {address}"));
    let trusted = match &code {
        None => format!("--server-key {key}"),
        Some(code) => format!("--code {code}"),
    };
    match code {
        None => say(format_args!("key {key}")),
        Some(code) => say(format_args!("code {code}")),
    }
    say(format_args!(
        "to send: hawser send FILE {address} {trusted}"
    ));
    if let Some(free) = free
        && !args.into.stdout
    {
        let output = plain(&args.into.output.display().to_string()).to_string();
        say(format_args!(
            "writing to {output}: {} are free",
            format::bytes(free)
        ));
    }
    if let Some(rate) = args.limit {
        say(format_args!("limited to {}", format::limit(rate)));
    }
    if let Some(used) = node.xdp() {
        say(format_args!("AF_XDP on {}", used.status));
    }
    Ok(())
}

/// Shows and counts what happens, until the receiver is to end.
async fn count(
    tally: &mut Tally,
    mut received: UnboundedReceiver<ServerEvent>,
    node: &Node,
    args: &ReceiveArgs,
) -> Result<(), Failure> {
    while !tally.is_over() {
        let overdue = async {
            match tally.next() {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = received.recv() => event,
            () = overdue => {
                tally.tick(Instant::now());
                continue;
            }
        };
        let Some(event) = event else {
            return Ok(());
        };
        let (mut peer, mut lost) = (None, None);
        match &event {
            ServerEvent::Began {
                session,
                peer,
                key,
                sends,
                name,
            } => {
                let transfer = Transfer {
                    peer: *peer,
                    key: *key,
                    sends: *sends,
                    name: name.clone(),
                };
                tally.began(*session, transfer);
            }
            ServerEvent::Ended(session, result) => {
                peer = tally.peer(*session);
                match result
                    .as_ref()
                    .map(|summary| (summary, files::outcome(summary)))
                {
                    Ok((summary, Err(_))) => {
                        let lasting = summary.failed.iter().filter(|file| file.is_lasting());
                        let incomplete = Incomplete {
                            files: summary.progress.files,
                            failed: summary.failed.len() as u64,
                            lasting: lasting.count() as u64,
                        };
                        tally.ended_without(*session, incomplete, Instant::now());
                    }
                    ended => {
                        let waits = tally.ended(*session, ended.err(), Instant::now());
                        lost = (waits && tally.next().is_some()).then_some(*session);
                    }
                }
            }
            ServerEvent::OfferEnded => {
                tally.offer_ended("too many codes were wrong: the code cannot be used any more");
            }
            _ => {}
        }
        let is_news = matches!(
            event,
            ServerEvent::Refused { .. } | ServerEvent::Keys(_) | ServerEvent::Ended(_, Err(_))
        );
        // Content alone goes to standard output.
        if !args.into.stdout || is_news {
            show(event, peer, node.xdp(), args.json)?;
        }
        if let (Some(session), Some(_)) = (lost, tally.wanted()) {
            errln!("hawser: {session}: waiting for its host to continue it");
        }
    }
    Ok(())
}

/// What a host does in a session that begins: where it sends to, or what it fetches, by name.
fn what_begins(sends: bool, name: &str) -> String {
    match (sends, plain(name)) {
        (true, folder) if folder.is_empty() => "sends".to_owned(),
        (true, folder) => format!("sends to {folder}"),
        (false, name) if name.is_empty() => "fetches everything".to_owned(),
        (false, name) => format!("fetches {name}"),
    }
}

/// Prints what happens at a server; `peer` is the host of a session that has ended.
pub fn show(
    event: ServerEvent,
    peer: Option<ScionAddr>,
    xdp: Option<XdpUse>,
    json: bool,
) -> Result<(), Failure> {
    match event {
        ServerEvent::Refused { peer, reason, .. } => {
            errln!("hawser: {peer} was refused: {}", plain(&reason));
        }
        // The command ends with it.
        ServerEvent::OfferEnded => {}
        ServerEvent::Keys(error) => errln!("hawser: {error}"),
        ServerEvent::Began {
            session,
            peer,
            sends,
            name,
            ..
        } => {
            if !json {
                outln!("{session}: {peer} {}", what_begins(sends, &name));
            }
        }
        ServerEvent::Session(session, TransferEvent::Limited(Some(rate))) if !json => {
            outln!(
                "{session}: limited to {} by the other side",
                format::limit(rate)
            );
        }
        ServerEvent::Session(..) => {}
        ServerEvent::Ended(session, Ok(summary)) => {
            let peer = peer.map(|peer| peer.to_string());
            let report = Report::new(&summary, peer.unwrap_or_default(), xdp);
            match json {
                true => print::json(&report)?,
                false => report.print(&session.to_string(), "transferred"),
            }
            files::list_failed(&format!("{session}: "), &summary.failed);
        }
        ServerEvent::Ended(session, Err(error)) => {
            errln!("hawser: {session}: {}", plain(&error.to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::what_begins;

    #[test]
    fn a_session_that_begins_is_described_without_a_name_as_well() {
        assert_eq!(what_begins(true, ""), "sends");
        assert_eq!(what_begins(true, "runs/7"), "sends to runs/7");
        assert_eq!(what_begins(false, "data.bin"), "fetches data.bin");
        assert_eq!(what_begins(false, ""), "fetches everything");
    }
}
