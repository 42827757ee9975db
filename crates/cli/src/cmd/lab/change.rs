//! `hawser lab link` and `hawser lab restart`: changes to a running network.

use std::time::Duration;

use clap::ValueEnum;
use hawser_lab::{LinkChange, RestartOf};
use hawser_path::Interface;
use hawser_topology::{IsdAsn, parse_duration};

use super::name::LabName;
use super::shape::ShapeArgs;
use crate::cmd::address::one_as;
use crate::failure::Failure;
use crate::out::outln;

#[derive(clap::Args)]
pub struct LinkArgs {
    /// One end of the link, for example 1-ff00:0:110#1
    #[arg(value_name = "A#IF")]
    interface: Interface,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Time that a full queue at the limit takes to drain, for example 50ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    queue: Option<Duration>,
    /// Largest SCION packet on the link, in bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// Let packets pass again
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// Let no packet pass
    #[arg(long)]
    down: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Changes a link.
pub fn link(args: LinkArgs) -> Result<(), Failure> {
    let change = LinkChange {
        rate: args.shape.rate.map(|r| r.0),
        delay: args.shape.delay,
        jitter: args.shape.jitter,
        loss: args.shape.loss,
        queue: args.queue,
        up: (args.up || args.down).then_some(args.up),
    };
    let changes = change != LinkChange::default();
    if !changes && args.mtu.is_none() {
        return Err(Failure::usage(
            "lab link set: give at least one of --rate, --delay, --jitter, --loss, --queue, --mtu, --up, --down",
        ));
    }
    let Interface { isd_as, id } = args.interface;
    let lab = args.lab.open()?;
    if let Some(mtu) = args.mtu {
        lab.edit(|network| network.set_link_mtu((isd_as, id), mtu), |_| ())?;
    }
    if changes {
        lab.set_link(isd_as, id, &change)?;
    }
    Ok(())
}

#[derive(clap::Args)]
pub struct RestartArgs {
    /// The AS, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// Only its border routers, its control service and daemon, or what gives plain IP the delay,
    /// jitter and loss of links
    #[arg(value_enum)]
    service: Option<ServiceArg>,
    /// After `router`: only the one of this name in topology.json
    #[arg(value_name = "NAME")]
    router: Option<String>,
    #[command(flatten)]
    lab: LabName,
}

/// A kind of service of an AS.
#[derive(Clone, Copy, ValueEnum)]
enum ServiceArg {
    Router,
    Control,
    Emulator,
}

/// Restarts the selected services, and prints their names.
pub fn restart(args: RestartArgs) -> Result<(), Failure> {
    let lab = args.lab.open()?;
    let which = match (args.service, args.router) {
        (None, _) => RestartOf::All,
        (Some(ServiceArg::Router), None) => RestartOf::Routers,
        (Some(ServiceArg::Router), Some(name)) => RestartOf::Router(name),
        (Some(ServiceArg::Control), None) => RestartOf::Control,
        (Some(ServiceArg::Emulator), None) => RestartOf::Emulator,
        (Some(ServiceArg::Control), Some(name)) => {
            return Err(Failure::usage(format!(
                "lab restart: {name:?} after control: an AS has one control service, leave the name out"
            )));
        }
        (Some(ServiceArg::Emulator), Some(name)) => {
            return Err(Failure::usage(format!(
                "lab restart: {name:?} after emulator: an AS has one emulator, leave the name out"
            )));
        }
    };
    for service in lab.restart(args.isd_as, &which)? {
        outln!("the {service} runs again");
    }
    Ok(())
}
