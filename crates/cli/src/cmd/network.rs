//! This host in its SCION network, and the sockets of a command that moves data.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use hawser_bootstrap::{JoinError, Server};
use hawser_endhost::{Bootstrap, BootstrapError, Endhost, ScionAddr};
use hawser_quic::{Config, Congestion, Endpoint};
use hawser_torrent::{ALPN, EncryptionPolicy, IpTransports, Listener, Network};

use super::address::{Listen, listen};
use super::congestion::congestion;
use super::{files, folders, headings};
use crate::failure::Failure;
use crate::out::errln;

/// How this host gets into its network.
#[derive(clap::Args)]
pub struct HostArgs {
    /// The SCION daemon: HOST:PORT, or `default` for 127.0.0.1:30255
    #[arg(long, value_name = "ADDR", value_parser = daemon, help_heading = headings::HOST, hide_short_help = true)]
    pub sciond: Option<String>,
    /// A folder with topology.json, to do without a daemon
    #[arg(long, value_name = "DIR", help_heading = headings::HOST, hide_short_help = true)]
    pub config_dir: Option<PathBuf>,
    /// The AS's bootstrap server, to do without a daemon: fetches topology.json and the TRCs from
    /// it (http://HOST, port 8041 unless named), and keeps them in hawser/bootstrap in
    /// $XDG_STATE_HOME or ~/.local/state
    #[arg(long, value_name = "URL", conflicts_with_all = ["sciond", "config_dir"], help_heading = headings::HOST, hide_short_help = true)]
    pub bootstrap: Option<Server>,
    /// This host's IP address in its AS
    #[arg(long, short, value_name = "IP", value_parser = local, help_heading = headings::HOST, hide_short_help = true)]
    pub local: Option<IpAddr>,
}

impl HostArgs {
    /// The options as the endhost takes them, with the folder of what a bootstrap server has.
    ///
    /// # Errors
    /// When a bootstrap server is named, and what it has cannot be fetched or kept.
    pub async fn bootstrap(&self) -> Result<Bootstrap, Failure> {
        Ok(self.fetch().await??)
    }

    /// The same. What the bootstrap server fails of is the inner error.
    ///
    /// # Errors
    /// When there is no folder to keep what the server has.
    pub async fn fetch(&self) -> Result<Result<Bootstrap, JoinError>, Failure> {
        let fetched = match &self.bootstrap {
            Some(server) => fetch(server).await?.map(Some),
            None => Ok(self.config_dir.clone()),
        };
        Ok(fetched.map(|config_dir| Bootstrap {
            daemon: self.sciond.clone(),
            config_dir,
            local: self.local,
        }))
    }

    /// This host in its SCION network.
    ///
    /// # Errors
    /// When it cannot join; wrong use, if a folder is named that does not exist.
    pub async fn join(&self) -> Result<Endhost, Failure> {
        if let Some(folder) = &self.config_dir {
            files::check_as_folder(folder)?;
        }
        Ok(Endhost::bootstrap(&self.bootstrap().await?).await?)
    }
}

impl HostArgs {
    /// Whether a flag names a network or how this host is in it.
    pub fn is_named(&self) -> bool {
        self.sciond.is_some()
            || self.config_dir.is_some()
            || self.bootstrap.is_some()
            || self.local.is_some()
    }

    /// This host in its SCION network, if one is named or found.
    ///
    /// # Errors
    /// When there is one and it cannot join.
    pub async fn join_if_any(&self) -> Result<Option<Endhost>, Failure> {
        match Endhost::bootstrap(&self.bootstrap().await?).await {
            Ok(host) => Ok(Some(host)),
            Err(BootstrapError::Nothing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The folder with what `server` has.
async fn fetch(server: &Server) -> Result<Result<PathBuf, JoinError>, Failure> {
    let state = folders::fetched("bootstrap")?;
    let joined = match hawser_bootstrap::join(server, &state).await {
        Ok(joined) => joined,
        Err(error) => return Ok(Err(error)),
    };
    for id in joined.trusted {
        errln!(
            "hawser: {id} of {server} is trusted from now on, and nothing proves it: compare it with \
             one that you have ({})",
            joined.folder.join("certs").display()
        );
    }
    Ok(Ok(joined.folder))
}

fn daemon(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match (text, port) {
        ("default", _) | (_, Some(Ok(_))) => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, for example 127.0.0.1:30255, or default".to_owned()),
    }
}

fn local(text: &str) -> Result<IpAddr, String> {
    match text.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => Ok(ip),
        _ => Err("write one of this host's IP addresses, without a port".to_owned()),
    }
}

/// Where a command listens on SCION.
#[derive(clap::Args)]
pub struct ListenArgs {
    /// Listen here: IP:PORT, or a SCION address of this AS
    ///
    /// Port 0 is any that routers deliver to.
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
}

/// How data moves between peers.
#[derive(clap::Args)]
pub struct TransportArgs {
    /// Congestion control of every path on which this side sends [default: auto]
    #[arg(long, value_name = "ALGORITHM", value_parser = congestion(), help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub congestion: Option<Congestion>,
    /// Encrypt connections with IP peers (MSE): disable, allow, prefer or require
    ///
    /// With allow they are encrypted if the peer wants it, with prefer unless it cannot. It hides
    /// the protocol, and protects from nobody. By default peers that connect may encrypt, and those
    /// dialed are first spoken to plainly.
    #[arg(long, value_name = "POLICY", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub encryption: Option<EncryptionPolicy>,
    /// How IP peers are reached, and connect: tcp, utp, or tcp,utp [default: tcp]
    ///
    /// With both, TCP is tried first, and uTP (BEP 29) as well if TCP does not connect soon. Peers then
    /// connect at the same port of TCP and UDP.
    #[arg(long, value_name = "WAY,...", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub transport: Option<IpTransports>,
}

impl TransportArgs {
    /// Over what IP peers are reached, and connect.
    pub fn transports(&self) -> IpTransports {
        self.transport.unwrap_or(IpTransports::TCP)
    }
}

/// The sockets of a seeder or a download. Clones are of the same.
#[derive(Clone)]
pub struct Sockets {
    /// All sockets, as the engine takes them.
    pub network: Network,
    /// The addresses at which peers reach them.
    pub addresses: Addresses,
    /// The endpoint for SCION peers, and this host there; `None` without a SCION network.
    scion: Option<(Endpoint, Endhost)>,
    /// Whether the UDP port of `addresses.tcp` is left to uTP, which may be switched on later.
    pub keeps_utp_port: bool,
}

impl Sockets {
    /// Opens the sockets: for SCION peers if there is a `host`, at `listen` or at any port; for IP
    /// peers at `tcp`, over `transports`.
    ///
    /// # Errors
    /// When a socket cannot be opened; wrong use, if `listen` is in another AS.
    pub async fn open(
        host: Option<Endhost>,
        config: Config,
        listen: Option<Listen>,
        tcp: Option<SocketAddr>,
        transports: IpTransports,
    ) -> Result<Self, Failure> {
        let mut sockets = Self {
            network: Network::ip(),
            addresses: Addresses::default(),
            scion: None,
            keeps_utp_port: false,
        };
        if let Some(host) = host {
            let listen = listen_address(listen, &host)?;
            let config = Config {
                alpn: ALPN.to_vec(),
                ..config
            };
            let endpoint = Endpoint::bind(host.clone(), listen, config)?;
            sockets.addresses.scion = Some(endpoint.local_addr());
            sockets.scion = Some((endpoint.clone(), host.clone()));
            sockets.network = Network::scion(endpoint, host);
        }
        if let Some(address) = tcp {
            let listener = Listener::bind_over(address, transports).await?;
            sockets.addresses.tcp = Some(listener.local_addr());
            sockets.network = sockets.network.with_listener(listener);
        }
        sockets.network = sockets.network.with_transports(transports);
        Ok(sockets)
    }

    /// This host in its SCION network, if there is one.
    pub fn host(&self) -> Option<&Endhost> {
        self.scion.as_ref().map(|(_, host)| host)
    }

    /// Sets which connections with IP peers are encrypted, if a policy is given.
    pub fn with_encryption(mut self, policy: Option<EncryptionPolicy>) -> Self {
        if let Some(policy) = policy {
            self.network = self.network.with_encryption(policy);
        }
        self
    }

    /// Closes the connections to SCION peers, and waits until the peers are notified.
    pub async fn close(&self) {
        if let Some((endpoint, _)) = &self.scion {
            endpoint.close().await;
        }
    }
}

/// The addresses that peers connect to; `None` where they cannot connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Addresses {
    /// For SCION peers.
    pub scion: Option<ScionAddr>,
    /// For IP peers.
    pub tcp: Option<SocketAddr>,
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scion, self.tcp) {
            (Some(scion), Some(tcp)) => write!(f, "at {scion}, and to IP peers at {tcp}"),
            (Some(scion), None) => write!(f, "at {scion}"),
            (None, Some(tcp)) => write!(f, "to IP peers at {tcp}"),
            (None, None) => write!(f, "to peers that are connected already"),
        }
    }
}

/// The address of this host that `listen` names.
///
/// # Errors
/// Wrong use, if it is in another AS.
pub fn listen_address(
    listen: Option<Listen>,
    host: &Endhost,
) -> Result<Option<SocketAddr>, Failure> {
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

    #[test]
    fn daemons_and_local_addresses_are_checked() {
        assert!(daemon("default").is_ok());
        assert!(daemon("[::1]:30255").is_ok());
        assert!(daemon("127.0.0.1").is_err());
        assert!(daemon("host:port").is_err());
        assert!(local("10.0.1.1").is_ok());
        assert!(local("0.0.0.0").is_err());
        assert!(local("10.0.1.1:31000").is_err());
    }
}
