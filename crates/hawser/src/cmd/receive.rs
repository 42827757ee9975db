//! `hawser receive`: take what other hosts send, and share a folder with them.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hawser_bulk::protocol::Choices;
use hawser_bulk::{
    Algorithm, Destination, Limit, ServerEvent, ServerOptions, SessionNumber, TransferEvent,
    XdpUse, serve,
};
use hawser_endhost::ScionAddr;
use hawser_keys::{Allowed, Code, PeerKey};
use hawser_topology::parse_rate;
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;

use super::address::{Listen, listen};
use super::bulk::files;
use super::bulk::report::{Report, mbit};
use super::bulk::spool::Spool;
use super::bulk::xdp::{XdpArgs, XdpReport};
use super::key::KeyFileArgs;
use super::network::{HostArgs, listen_address};
use super::{print, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Most sessions at once by default.
const SESSIONS: u16 = 16;

#[derive(clap::Args)]
pub struct ReceiveArgs {
    /// The folder to write to; nothing is written outside of it
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Verify everything and write nothing, to measure all but the disk
    #[arg(long, conflicts_with = "output")]
    pub discard: bool,
    /// Take one file, print it on standard output once all of it is verified, and end; everything else
    /// is printed on standard error
    #[arg(long, conflicts_with_all = ["output", "discard", "share", "count", "json"])]
    pub stdout: bool,
    /// Take the owning users that are sent, by number, with set-uid; it takes root
    #[arg(long)]
    pub owner: bool,
    /// Take the owning groups that are sent, by number, with set-gid
    #[arg(long, short)]
    pub group: bool,
    /// Take the ACLs that are sent
    #[arg(long, short = 'A')]
    pub acls: bool,
    /// Take the extended attributes of users that are sent
    #[arg(long, short = 'X')]
    pub xattrs: bool,
    /// Let others fetch what is in this folder
    #[arg(long, value_name = "DIR")]
    pub share: Option<PathBuf>,
    /// A host that may connect, by its key as `hawser key` prints it; may be given several times
    /// [default: those in hawser/allowed_keys of the user's configuration folder]
    #[arg(long, value_name = "KEY")]
    pub allow: Vec<PeerKey>,
    /// Let every host connect that can reach this one
    #[arg(long, conflicts_with = "allow")]
    pub allow_any: bool,
    /// Make a code, let the one host connect that is given it with --code, and end after its transfer
    #[arg(long, conflicts_with_all = ["allow", "allow_any", "count"])]
    pub once: bool,
    /// End after this many transfers
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Most transfers at once
    #[arg(long, value_name = "N", default_value_t = SESSIONS, value_parser = clap::value_parser!(u16).range(1..))]
    pub sessions: u16,
    /// Rate control of every path on which this side sends [default: auto]
    #[arg(long, value_name = "ALGORITHM")]
    pub congestion: Option<Algorithm>,
    /// Most content per second that others send here, all together, and as much again that they fetch:
    /// 100mbit, 2.5gbit
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub limit: Option<u64>,
    /// Listen here: IP:PORT, or a SCION address of this AS; port 0 is any that routers deliver to
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    #[command(flatten)]
    pub key: KeyFileArgs,
    #[command(flatten)]
    pub xdp: XdpArgs,
    /// Print JSON: one object when listening, and one for each transfer
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

/// Runs `hawser receive`.
pub fn run(args: ReceiveArgs) -> Result<(), Failure> {
    let identity = args.key.file()?.open()?;
    let code = args.once.then(Code::generate).transpose()?;
    let allows: Arc<dyn Fn(&PeerKey) -> bool + Send + Sync> = match args.allow_any {
        true => Arc::new(|_| true),
        false => {
            let file = hawser_keys::folder()?.join(Allowed::FILE);
            let mut allowed = Allowed::new(args.allow.clone());
            if !args.once {
                allowed = allowed.with_file_if_any(file)?;
            }
            Arc::new(move |key| match allowed.allows(key) {
                Ok(allows) => allows,
                Err(error) => {
                    errln!("hawser: {error}");
                    false
                }
            })
        }
    };
    let spool = args.stdout.then(Spool::new).transpose()?;
    let folder = spool.as_ref().map_or(args.output.as_path(), Spool::path);
    let receive = match args.discard {
        true => Destination::Discard,
        false => Destination::Folder {
            root: folder.to_owned(),
            name: PathBuf::new(),
        },
    };
    let options = ServerOptions {
        allows,
        code: code.clone(),
        receive: Some(receive),
        share: args.share.clone(),
        take: Choices::NONE
            .with(Choices::OWNER, args.owner)
            .with(Choices::GROUP, args.group)
            .with(Choices::ACLS, args.acls)
            .with(Choices::ATTRIBUTES, args.xattrs),
        sessions: args.sessions.into(),
        algorithm: args.congestion.unwrap_or_default(),
        limit: args.limit.map(|rate| Limit::new(rate, None)),
    };
    process::runtime()?.block_on(async {
        let host = args.host.join().await?;
        let listen = listen_address(args.listen, &host)?;
        let node = args.xdp.bind(host, listen, identity)?;
        let (address, key) = (node.local_addr().to_string(), node.key().to_string());
        let code = code.map(|code| code.to_string());
        match (args.json, &code) {
            (true, code) => {
                let xdp = node.xdp().as_ref().map(XdpReport::new);
                let limit = args.limit.map(mbit);
                let listening = json!({
                    "listening": address, "key": key, "code": code, "limit_mbit": limit, "xdp": xdp,
                });
                print::json(&listening)?;
            }
            (false, None) => say(
                spool.as_ref(),
                format_args!("receiving at {address}\nkey {key}"),
            ),
            (false, Some(code)) => say(
                spool.as_ref(),
                format_args!("receiving at {address}\ncode {code}"),
            ),
        }
        if let (Some(rate), false) = (args.limit, args.json) {
            say(
                spool.as_ref(),
                format_args!("limited to {}", format::limit(rate)),
            );
        }
        if let Some(used) = node.xdp()
            && !args.json
        {
            say(spool.as_ref(), format_args!("AF_XDP on {}", used.status));
        }
        let (events, mut received) = unbounded_channel();
        let mut ended = 0;
        let mut peers = HashMap::new();
        let serving = serve(&node, options, events);
        tokio::pin!(serving);
        let interrupted = process::interrupted();
        tokio::pin!(interrupted);
        let count = args
            .count
            .or_else(|| (args.once || args.stdout).then_some(1));
        while count.is_none_or(|count| ended < count) {
            tokio::select! {
                () = &mut serving => break,
                Some(event) = received.recv() => {
                    ended += u64::from(matches!(event, ServerEvent::Ended(..)));
                    let is_news = matches!(
                        event,
                        ServerEvent::Refused { .. } | ServerEvent::Ended(_, Err(_))
                    );
                    if spool.is_none() || is_news {
                        show(event, &mut peers, node.xdp(), args.json)?;
                    }
                }
                signal = &mut interrupted => {
                    signal?;
                    break;
                }
            }
        }
        node.close().await;
        spool.map_or(Ok(()), |spool| spool.print())
    })
}

/// Prints a line for people: on standard error if content goes to standard output.
fn say(spool: Option<&Spool>, line: fmt::Arguments<'_>) {
    match spool {
        Some(_) => errln!("{line}"),
        None => outln!("{line}"),
    }
}

/// Prints what happens at a server; `peers` are the hosts of the sessions that run.
pub fn show(
    event: ServerEvent,
    peers: &mut HashMap<SessionNumber, ScionAddr>,
    xdp: Option<XdpUse>,
    json: bool,
) -> Result<(), Failure> {
    match event {
        ServerEvent::Refused { peer, reason, .. } => {
            errln!("hawser: {peer} was refused: {}", plain(&reason));
        }
        ServerEvent::Began {
            session,
            peer,
            sends,
            name,
            ..
        } => {
            peers.insert(session, peer);
            if !json {
                let does = if sends { "sends" } else { "fetches" };
                outln!("{session}: {peer} {does} {}", plain(&name));
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
            let peer = peers.remove(&session).map(|peer| peer.to_string());
            let report = Report::new(&summary, peer.unwrap_or_default(), xdp);
            match json {
                true => print::json(&report)?,
                false => report.print(&session.to_string(), "transferred"),
            }
            files::list_failed(&format!("{session}: "), &summary.failed);
        }
        ServerEvent::Ended(session, Err(error)) => {
            peers.remove(&session);
            errln!("hawser: {session}: {}", plain(&error.to_string()));
        }
    }
    Ok(())
}
