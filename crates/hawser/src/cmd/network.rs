//! This host in its SCION network, and the sockets of a command that moves data.

use std::net::SocketAddr;

use hawser_endhost::{Endhost, ScionAddr};
use hawser_quic::{Config, Endpoint};
use hawser_torrent::{Listener, Network};

use super::files;
use crate::cli::{HostArgs, Listen};
use crate::failure::Failure;

/// This host in its SCION network, as the arguments describe it.
pub async fn host(args: &HostArgs) -> Result<Endhost, Failure> {
    if let Some(folder) = &args.config_dir {
        files::check_input(folder)?;
    }
    Endhost::bootstrap(&args.bootstrap())
        .await
        .map_err(Failure::job)
}

/// The sockets of a seeder or a download.
pub struct Sockets {
    /// All of them, as the engine takes them.
    pub network: Network,
    /// That of SCION peers; `None` without a SCION network.
    pub endpoint: Option<Endpoint>,
    /// Where IP peers connect; `None` if they cannot.
    pub tcp: Option<SocketAddr>,
}

impl Sockets {
    /// Opens them: for SCION peers if there is a `host`, at `listen` or at any port; for IP peers
    /// to connect at `tcp`.
    pub async fn open(
        host: Option<Endhost>,
        config: Config,
        listen: Option<Listen>,
        tcp: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let mut sockets = Self {
            network: Network::ip(),
            endpoint: None,
            tcp: None,
        };
        if let Some(host) = host {
            let listen = listen_address(listen, &host)?;
            let endpoint = Endpoint::bind(host.clone(), listen, config).map_err(Failure::job)?;
            sockets.endpoint = Some(endpoint.clone());
            sockets.network = Network::scion(endpoint, host);
        }
        if let Some(address) = tcp {
            let listener = Listener::bind(address).await.map_err(Failure::job)?;
            sockets.tcp = Some(listener.local_addr());
            sockets.network = sockets.network.with_listener(listener);
        }
        Ok(sockets)
    }

    /// Where peers reach them.
    pub fn addresses(&self) -> Addresses {
        Addresses {
            scion: self.endpoint.as_ref().map(Endpoint::local_addr),
            tcp: self.tcp,
        }
    }

    /// Closes those of SCION peers, and waits until they are notified.
    pub async fn close(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.close().await;
        }
    }
}

/// Where peers connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// SCION peers.
    pub scion: Option<ScionAddr>,
    /// IP peers.
    pub tcp: Option<SocketAddr>,
}

impl Addresses {
    /// Whether no peer can connect.
    pub fn is_none(&self) -> bool {
        self.scion.is_none() && self.tcp.is_none()
    }
}

impl std::fmt::Display for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.scion, self.tcp) {
            (Some(scion), Some(tcp)) => write!(f, "at {scion}, and to IP peers at {tcp}"),
            (Some(scion), None) => write!(f, "at {scion}"),
            (None, Some(tcp)) => write!(f, "to IP peers at {tcp}"),
            (None, None) => write!(f, "to peers that are connected already"),
        }
    }
}

fn listen_address(listen: Option<Listen>, host: &Endhost) -> Result<Option<SocketAddr>, Failure> {
    match listen {
        None => Ok(None),
        Some(Listen::Ip(address)) => Ok(Some(address)),
        Some(Listen::Scion(address)) if address.isd_as == host.local_as() => Ok(Some(address.host)),
        Some(Listen::Scion(address)) => Err(Failure::usage(format!(
            "--listen {address}: this host is in {}",
            host.local_as()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_by_kind_of_peer() {
        let scion = "1-ff00:0:4,10.0.4.1:31000".parse().ok();
        let tcp = "[::1]:6881".parse().ok();
        let text = |scion, tcp| Addresses { scion, tcp }.to_string();
        let both = "at 1-ff00:0:4,10.0.4.1:31000, and to IP peers at [::1]:6881";
        assert_eq!(text(scion, tcp), both);
        assert_eq!(text(scion, None), "at 1-ff00:0:4,10.0.4.1:31000");
        assert_eq!(text(None, tcp), "to IP peers at [::1]:6881");
        assert_eq!(text(None, None), "to peers that are connected already");
    }
}
