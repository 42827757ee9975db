//! What other hosts may connect to, and which hosts.

use hawser_keys::{Allowed, PeerKey};
use hawser_shim::holder::{ProxyHeader, Served, ServedPort};
use ipnet::IpNet;

use crate::failure::Failure;

/// Which of this host's servers other hosts may connect to.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Let other hosts connect to these TCP ports of this one: 22,443, or 443=127.0.0.1:8443 for a
    /// server elsewhere; `all` for every port
    #[arg(long, value_name = "PORT,...|all", value_parser = ports)]
    serve: Option<Ports>,
    /// Let other hosts connect to every port of the hosts in this network, which are behind this one
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    serve_network: Vec<IpNet>,
    /// Send servers the address of the program in a header of the PROXY protocol, v1 or v2
    #[arg(long, value_name = "VERSION")]
    proxy_protocol: Option<ProxyHeader>,
    /// A host whose programs may connect, by its key as `hawser key` prints it; may be given several
    /// times [default: those in hawser/allowed_keys of the user's configuration folder]
    #[arg(long, value_name = "KEY")]
    allow: Vec<PeerKey>,
    /// Let the programs of every host connect that can reach this one
    #[arg(long, conflicts_with = "allow")]
    allow_any: bool,
}

/// The argument of `--serve`.
#[derive(Debug, Clone)]
enum Ports {
    All,
    Some(Vec<ServedPort>),
}

fn ports(text: &str) -> Result<Ports, String> {
    if text == "all" {
        return Ok(Ports::All);
    }
    let ports: Result<_, _> = text.split(',').map(str::parse).collect();
    let error = |error: hawser_shim::holder::ServedPortError| error.to_string();
    ports.map(Ports::Some).map_err(error)
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let wrong = |_| "write an IP prefix, for example 10.1.0.0/16".to_owned();
    text.parse().map_err(wrong)
}

impl ServeArgs {
    /// What other hosts may connect to.
    pub(super) fn served(&self) -> Served {
        Served {
            all: matches!(self.serve, Some(Ports::All)),
            ports: match &self.serve {
                Some(Ports::Some(ports)) => ports.clone(),
                _ => Vec::new(),
            },
            networks: self.serve_network.clone(),
            proxy_header: self.proxy_protocol,
        }
    }

    /// The keys of hosts that may connect; `None` for any.
    pub(super) fn allowed(&self) -> Result<Option<Allowed>, Failure> {
        let allowed = Allowed::new(self.allow.clone());
        let allowed = match self.allow.is_empty() {
            true => allowed.with_file_if_any(hawser_keys::folder()?.join(Allowed::FILE))?,
            false => allowed,
        };
        Ok((!self.allow_any).then_some(allowed))
    }
}
