//! `hawser lab invite`: lets another machine join a running lab as an AS.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use hawser_lab::{Invite, RelayEnd};
use hawser_topology::IsdAsn;
use serde_json::json;

use super::capture::stop_after;
use super::name::LabName;
use super::shape::ShapeArgs;
use crate::cmd::address::one_as;
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln};
use crate::output::Output;

// The usage that follows from the arguments is wider than a screen.
#[derive(clap::Args)]
#[command(override_usage = "hawser lab invite [OPTIONS] --parent <AS> --at <ADDR> -o <FILE> <AS>")]
pub struct InviteArgs {
    /// The AS of the other machine, for example 1-ff00:0:200: a new one, or one that was invited before
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// An AS of the lab that it gets a link to, as its child; several times for several links
    #[arg(long = "parent", value_name = "AS", value_parser = one_as, required = true)]
    parents: Vec<IsdAsn>,
    /// IP:PORT of this machine, of UDP, that the other machine reaches; further links have the ports after it
    #[arg(long, value_name = "ADDR", value_parser = reached_at)]
    at: SocketAddr,
    /// The archive to write, for `hawser as join`; the segments get the same name with .segments
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Take packets from this address alone; from any when not given
    #[arg(long, value_name = "IP")]
    accept: Option<IpAddr>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Largest SCION packet on the new links, in bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Print JSON: what was written, then one line for each event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

fn reached_at(text: &str) -> Result<SocketAddr, String> {
    let wrong = || "write IP:PORT of this machine, for example 192.0.2.1:50200".to_owned();
    let at: SocketAddr = text.parse().map_err(|_| wrong())?;
    // The other machine sends there.
    match at.ip().is_unspecified() || at.port() == 0 {
        true => Err(wrong()),
        false => Ok(at),
    }
}

/// The file with the segments beside an archive.
fn segments_beside(archive: &Path) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(".segments");
    name.into()
}

/// Writes the invitation, and carries packets until a signal or the end of the lab.
pub fn run(args: &InviteArgs) -> Result<(), Failure> {
    let segments = segments_beside(&args.output);
    for file in [&args.output, &segments] {
        Output::check("-o", file, args.force, &[])?;
    }
    let lab = args.lab.open()?;
    let invite = Invite {
        isd_as: args.isd_as,
        parents: args.parents.clone(),
        shape: args.shape.of_new(),
        mtu: args.mtu,
        at: args.at,
        from: args.accept,
    };
    let mut invitation = lab.invite(&invite, |step| {
        if !args.json {
            outln!("{step}");
        }
    })?;
    let write = |file: &Path, bytes: &[u8]| {
        hawser_file::write(file, bytes, hawser_file::PRIVATE).doing(file.display())
    };
    write(&args.output, &invitation.archive)?;
    write(&segments, &invitation.segments)?;
    let stop = stop_after(None)?;
    let archive = args.output.display();
    let at = invitation.relay.local_addrs().doing("carrying packets")?;
    match args.json {
        true => outln!(
            "{}",
            json!({
                "event": "invited",
                "isd_as": args.isd_as.to_string(),
                "at": args.at.to_string(),
                "interfaces": at,
                "archive": archive.to_string(),
                "segments": segments.display().to_string(),
                "segments_expire": invitation.expiry,
            })
        ),
        false => {
            outln!(
                "{archive} and {} are for the other machine:",
                segments.display()
            );
            outln!(
                "  hawser as join {archive} --segments {}",
                segments.display()
            );
            let all: Vec<String> = at.values().map(ToString::to_string).collect();
            match &all[..] {
                [one] => outln!("packets of its link are carried at {one} until Ctrl-C"),
                _ => outln!(
                    "packets of its links are carried at {} until Ctrl-C",
                    all.join(", ")
                ),
            }
        }
    }
    let ended = invitation.relay.run(stop.as_fd(), |interface, peer| {
        let from = peer.to_string();
        match args.json {
            true => outln!(
                "{}",
                json!({"event": "heard", "interface": interface, "from": from})
            ),
            false => outln!("the other machine is heard at interface {interface}, from {from}"),
        }
    });
    let (ended, relayed) = (ended.doing("carrying packets")?, invitation.relay.relayed());
    match args.json {
        true => outln!("{}", json!({"event": "ended", "relayed": relayed})),
        false => errln!(
            "{} packets to the other machine, {} from it, {} dropped",
            relayed.sent,
            relayed.received,
            relayed.dropped
        ),
    }
    match ended {
        RelayEnd::Gone => Err(Failure::job(format_args!(
            "lab {} has ended, or has no AS {} any more",
            lab.name(),
            args.isd_as
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_machine_needs_an_address_and_a_port() {
        assert!(reached_at("192.0.2.1:50200").is_ok());
        assert!(reached_at("[2001:db8::1]:50200").is_ok());
        for wrong in ["192.0.2.1", "0.0.0.0:1", "192.0.2.1:0", "host:1"] {
            assert!(reached_at(wrong).is_err(), "{wrong}");
        }
        let beside = segments_beside(Path::new("a/as.tar.gz"));
        assert_eq!(beside, Path::new("a/as.tar.gz.segments"));
    }
}
