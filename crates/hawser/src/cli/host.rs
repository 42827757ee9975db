//! How this host gets into its SCION network.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use hawser_endhost::Bootstrap;

/// How this host gets into its network.
#[derive(Args)]
pub struct HostArgs {
    /// The SCION daemon: HOST:PORT, or `default` for 127.0.0.1:30255
    #[arg(long, value_name = "ADDR", value_parser = daemon)]
    pub sciond: Option<String>,
    /// A folder with topology.json, to do without a daemon
    #[arg(long, value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// This host's IP address in its AS
    #[arg(long, short, value_name = "IP", value_parser = local)]
    pub local: Option<IpAddr>,
}

impl HostArgs {
    /// The same, as the endhost takes it.
    pub fn bootstrap(&self) -> Bootstrap {
        Bootstrap {
            daemon: self.sciond.clone(),
            config_dir: self.config_dir.clone(),
            local: self.local,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
