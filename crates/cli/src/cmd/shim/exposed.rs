//! What other hosts may connect to.

use hawser_shim::holder::{ProxyHeader, Served, ServedPort};
use ipnet::IpNet;

use crate::cmd::headings;

/// Which of this host's servers other hosts may connect to.
#[derive(clap::Args)]
pub struct ExposeArgs {
    /// Let other hosts connect to these TCP ports: 22,443
    ///
    /// 443=127.0.0.1:8443 is a server elsewhere, `all` every port.
    #[arg(long, value_name = "PORT,...|all", value_parser = ports)]
    expose: Option<Ports>,
    /// Let other hosts connect to every port of the hosts in this network, which are behind this one
    #[arg(long, value_name = "PREFIX", value_parser = prefix, help_heading = headings::RARE, hide_short_help = true)]
    expose_network: Vec<IpNet>,
    /// Send servers the address of the program in a header of the PROXY protocol, v1 or v2
    #[arg(long, value_name = "VERSION", help_heading = headings::RARE, hide_short_help = true)]
    proxy_protocol: Option<ProxyHeader>,
}

/// The argument of `--expose`.
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

impl ExposeArgs {
    /// What other hosts may connect to.
    pub(super) fn served(&self) -> Served {
        Served {
            all: matches!(self.expose, Some(Ports::All)),
            ports: match &self.expose {
                Some(Ports::Some(ports)) => ports.clone(),
                _ => Vec::new(),
            },
            networks: self.expose_network.clone(),
            proxy_header: self.proxy_protocol,
        }
    }
}
