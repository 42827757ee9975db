//! Shims at both ends of a network.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hawser_topology::IsdAsn;

use super::TestBed;
use super::shim::{Shim, ShimOptions, ShimPath};
use crate::cpu::Meter;
use crate::error::{During, ExperimentError};

/// Shims of a sender and of a receiver. TCP programs of the sender reach those of the receiver at
/// [`MAPPED`](Self::MAPPED).
pub struct ShimPair<'a> {
    sender: Shim<'a>,
    receiver: Shim<'a>,
}

impl ShimPair<'_> {
    /// Where programs find the receiver: an address that nobody has (RFC 5737), so that nothing reaches it
    /// past the shim.
    pub const MAPPED: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// The paths that the sender uses.
    ///
    /// # Errors
    /// When it does not say, or a connection failed.
    pub async fn paths(&self) -> Result<Vec<ShimPath>, ExperimentError> {
        self.sender.paths().await
    }

    /// Begins to measure the processor time of the processes of each, the sender's first.
    pub fn meters(&self) -> [Meter; 2] {
        [&self.sender, &self.receiver].map(Shim::meter)
    }

    /// The processes of both.
    pub fn processes(&self) -> Vec<u32> {
        [&self.sender, &self.receiver].map(Shim::processes).concat()
    }

    /// Takes both down.
    ///
    /// # Errors
    /// When that fails.
    pub async fn down(self) -> Result<(), ExperimentError> {
        self.sender.down().await?;
        self.receiver.down().await
    }
}

impl TestBed {
    /// Brings both shims up: that of the receiver serves these `ports`, that of the sender has further
    /// arguments, and both have others. Maps and keys are in the bed's folder.
    ///
    /// # Errors
    /// When one does not come up.
    pub async fn shims_up(
        &self,
        (sender, receiver): (IsdAsn, IsdAsn),
        ports: &[u16],
        args: Vec<String>,
        both: &[String],
    ) -> Result<ShimPair<'_>, ExperimentError> {
        let address = self.host(receiver)?;
        let served = ports.iter().map(|&port| {
            let to = SocketAddr::new(address, port);
            format!("{port}={to}")
        });
        let served: Vec<String> = served.collect();
        let serving = ["--allow-any", "--expose", &served.join(",")].map(str::to_owned);
        let mapped = ShimPair::MAPPED;
        let map = format!("[destinations]\n\"{mapped}\" = \"{receiver},{address}\"\n");
        let up = async |name: &str, isd_as, map: &str, args: Vec<String>| {
            let file = self.folder().join(format!("{name}.toml"));
            fs::write(&file, map).during("writing a map")?;
            let options = ShimOptions {
                isd_as,
                map: &file,
                key: &self.folder().join(format!("{name}.key")),
                args: [args, both.to_vec()].concat(),
            };
            self.shim_up(&options).await
        };
        Ok(ShimPair {
            receiver: up("receiver", receiver, "", serving.into()).await?,
            sender: up("sender", sender, &map, args).await?,
        })
    }
}
