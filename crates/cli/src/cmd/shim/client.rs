//! What a shim that carries connections of this host's programs is given: its key, the keys that it
//! trusts, the map, and how paths are chosen.

use hawser_endhost::Endhost;
use hawser_keys::{Identity, Known};
use hawser_manager::PathOptions;
use hawser_seal::Cipher;
use hawser_shim::address;
use hawser_shim::carrier::Destinations;
use hawser_shim::map::{Follower, Local, Role};

use super::map::MapFileArgs;
use crate::cmd::key::KeyFileArgs;
use crate::cmd::select::PathArgs;
use crate::cmd::trust::TrustArgs;
use crate::cmd::{headings, policy};
use crate::failure::Failure;

/// How connections of this host's programs are carried.
#[derive(clap::Args)]
pub struct ClientArgs {
    #[command(flatten)]
    trust: TrustArgs,
    /// Send packets that are neither encrypted nor authenticated, and take such, to measure what
    /// that costs
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    no_seal: bool,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    map: MapFileArgs,
    #[command(flatten)]
    key: KeyFileArgs,
}

impl ClientArgs {
    /// This host's key.
    pub fn identity(&self) -> Result<Identity, Failure> {
        Ok(self.key.file()?.open()?)
    }

    /// The keys of hosts that are connected to; `None` for any.
    pub fn servers(&self) -> Result<Option<Known>, Failure> {
        self.trust.known()
    }

    /// Which paths are used.
    pub fn paths(&self) -> Result<PathOptions, Failure> {
        let most = usize::from(address::SLOTS);
        if self.paths.select.most() > most {
            return Err(Failure::usage(format!(
                "--paths: at most {most} paths: the kernel's MPTCP has no more subflows"
            )));
        }
        Ok(PathOptions {
            select: self.paths.select.read()?,
            subflows: self.paths.select.most(),
            policy: policy::read(&self.paths.policy)?,
            sensing: false,
            ..PathOptions::default()
        })
    }

    /// How datagrams are sealed.
    pub fn cipher(&self) -> Cipher {
        match self.no_seal {
            true => Cipher::Null,
            false => Cipher::preferred(),
        }
    }

    /// Checks that the map can be read.
    pub fn check_map(&self) -> Result<(), Failure> {
        self.map.read().map(drop)
    }

    /// Where connections go, by the map.
    pub fn destinations(&self, host: &Endhost) -> Result<Destinations, Failure> {
        let (map, _) = self.map.path()?;
        Ok(Destinations::new(Follower::new(map), local(host)?))
    }
}

/// The addresses that must not be captured.
fn local(host: &Endhost) -> Result<Local, Failure> {
    let mut local = Local::new(host.local_as());
    for (_, ip) in hawser_kernel::interface::addresses()? {
        local = local.with_address(ip, Role::Host);
    }
    for router in host.routers().values() {
        local = local.with_address(router.ip(), Role::Router);
    }
    Ok(local)
}
