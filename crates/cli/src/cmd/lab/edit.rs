//! `hawser lab add` and `hawser lab remove`: parts of a running network.

use clap::{Subcommand, ValueEnum};
use hawser_path::Interface;
use hawser_topology::{IsdAsn, LinkKind, Network, NewAs, NewLink, Underlay};

use super::name::LabName;
use super::shape::ShapeArgs;
use super::{apply, host};
use crate::cmd::address::one_as;
use crate::failure::Failure;
use crate::out::outln;

#[derive(Subcommand)]
pub enum AddCommand {
    /// Add an AS, without links
    As(AddAsArgs),
    /// Add a link between two ASes
    Link(AddLinkArgs),
    /// Give interfaces of an AS a border router of their own
    Router(AddRouterArgs),
    /// Add a host to an AS, beside the one that it has
    Host(host::AddHostArgs),
}

#[derive(Subcommand)]
pub enum RemoveCommand {
    /// Remove an AS, with its links and everything that runs in it
    As(RemoveAsArgs),
    /// Remove a link
    Link(RemoveLinkArgs),
    /// Remove a border router; another one of its AS gets its interfaces
    Router(RemoveRouterArgs),
    /// Remove a host that was added, and end what runs in it
    Host(host::RemoveHostArgs),
}

#[derive(clap::Args)]
pub struct AddAsArgs {
    /// The AS, for example 1-ff00:0:112
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// Make it a core AS of its ISD
    #[arg(long)]
    core: bool,
    /// Largest SCION packet inside the AS, in bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// UDP/IPv4 or UDP/IPv6 between its hosts and routers; UDP/IPv4 when not given
    #[arg(long, value_name = "UNDERLAY")]
    underlay: Option<Underlay>,
    /// A note, which path metadata has
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    edit: EditArgs,
}

/// The kind of a link.
#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    /// Between two core ASes
    Core,
    /// From a parent to its child
    Child,
    /// Between two ASes outside the hierarchy
    Peer,
}

#[derive(clap::Args)]
pub struct AddLinkArgs {
    /// The first end, the parent of a child: 1-ff00:0:110, or 1-ff00:0:110#3 for interface 3, or
    /// 1-ff00:0:110-B#3 at the border router B
    #[arg(value_name = "A")]
    a: String,
    /// The other end
    #[arg(value_name = "B")]
    b: String,
    /// Core between core ASes, and else child, when not given
    #[arg(long, value_name = "KIND")]
    kind: Option<KindArg>,
    /// Largest SCION packet on the link, in bytes
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// UDP/IPv4 or UDP/IPv6 between its routers; UDP/IPv4 when not given
    #[arg(long, value_name = "UNDERLAY")]
    underlay: Option<Underlay>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    edit: EditArgs,
}

#[derive(clap::Args)]
pub struct AddRouterArgs {
    /// The AS, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// The name of the router, as B in 1-ff00:0:110-B#3
    #[arg(value_name = "NAME")]
    router: String,
    /// The interfaces that it gets, for example 2,3
    #[arg(value_name = "IF", required = true, value_delimiter = ',')]
    interfaces: Vec<u16>,
    #[command(flatten)]
    edit: EditArgs,
}

#[derive(clap::Args)]
pub struct RemoveAsArgs {
    /// The AS, for example 1-ff00:0:112
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    #[command(flatten)]
    edit: EditArgs,
}

#[derive(clap::Args)]
pub struct RemoveLinkArgs {
    /// One end of the link, for example 1-ff00:0:110#1
    #[arg(value_name = "A#IF")]
    interface: Interface,
    #[command(flatten)]
    edit: EditArgs,
}

#[derive(clap::Args)]
pub struct RemoveRouterArgs {
    /// The AS, for example 1-ff00:0:110
    #[arg(value_name = "AS", value_parser = one_as)]
    isd_as: IsdAsn,
    /// The name of the router, as B in 1-ff00:0:110-B#3
    #[arg(value_name = "NAME")]
    router: String,
    #[command(flatten)]
    edit: EditArgs,
}

/// What all of these have.
#[derive(clap::Args)]
pub struct EditArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

impl EditArgs {
    /// Changes the network of the lab, and prints the steps.
    fn run(&self, edit: impl FnOnce(&mut Network) -> Result<(), String>) -> Result<(), Failure> {
        let lab = self.lab.open()?;
        let applied = lab.edit(edit, |step| {
            if !self.json {
                outln!("{step}");
            }
        })?;
        apply::report(&lab, &applied, (false, self.json))
    }
}

/// Adds a part.
pub fn add(command: AddCommand) -> Result<(), Failure> {
    match command {
        AddCommand::As(args) => {
            let new = NewAs {
                isd_as: args.isd_as,
                core: args.core,
                mtu: args.mtu,
                underlay: args.underlay.unwrap_or_default(),
                note: args.note,
            };
            args.edit.run(|network| network.add_as(new))
        }
        AddCommand::Link(args) => {
            let new = NewLink {
                a: args.a,
                b: args.b,
                kind: args.kind.map(|kind| match kind {
                    KindArg::Core => LinkKind::Core,
                    KindArg::Child => LinkKind::Child,
                    KindArg::Peer => LinkKind::Peer,
                }),
                mtu: args.mtu,
                underlay: args.underlay.unwrap_or_default(),
                shape: args.shape.of_new(),
            };
            args.edit.run(|network| network.add_link(&new))
        }
        AddCommand::Router(args) => {
            let (isd_as, router) = (args.isd_as, args.router);
            let interfaces = args.interfaces;
            args.edit
                .run(|network| network.add_router(isd_as, &router, &interfaces))
        }
        AddCommand::Host(args) => host::add(args),
    }
}

/// Removes a part.
pub fn remove(command: RemoveCommand) -> Result<(), Failure> {
    match command {
        RemoveCommand::As(args) => args.edit.run(|network| network.remove_as(args.isd_as)),
        RemoveCommand::Link(args) => {
            let Interface { isd_as, id } = args.interface;
            args.edit.run(|network| network.remove_link(isd_as, id))
        }
        RemoveCommand::Router(args) => {
            let (isd_as, router) = (args.isd_as, args.router);
            args.edit
                .run(|network| network.remove_router(isd_as, &router))
        }
        RemoveCommand::Host(args) => host::remove(&args),
    }
}
