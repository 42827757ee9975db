//! The sockets of bulk transfer: `--data-port PORT`, and `--xdp DEVICE`, content past the kernel's
//! stack.

use std::net::SocketAddr;

use hawser_bulk::{Node, Sockets, TransferError, XdpHook, XdpUse};
use hawser_endhost::Endhost;
use hawser_keys::Identity;
use serde::Serialize;

use crate::cmd::headings;
use crate::failure::Failure;

/// How content leaves and arrives.
#[derive(clap::Args)]
pub struct SocketArgs {
    /// The UDP port for content on this host, for firewalls; the last free one that routers deliver to
    /// when not given
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub data_port: Option<u16>,
    /// Send and receive content past the kernel's network stack, by AF_XDP on this network card; needs
    /// root, or some capabilities
    #[arg(long, value_name = "DEVICE", help_heading = headings::TRANSPORT, hide_short_help = true)]
    pub xdp: Option<String>,
}

impl SocketArgs {
    /// Binds the sockets of this host.
    ///
    /// # Errors
    /// When that fails; wrong use, if the device is not one for it.
    pub fn bind(
        &self,
        host: Endhost,
        listen: Option<SocketAddr>,
        identity: Identity,
    ) -> Result<Node, Failure> {
        let sockets = Sockets {
            listen,
            data_port: self.data_port,
            xdp: self.xdp.clone(),
        };
        let device = self.xdp.as_deref().unwrap_or_default();
        match (Node::bind(host, &sockets, identity), self.data_port) {
            (Err(TransferError::Xdp(error)), _) if error.is_wrong_device() => {
                Err(Failure::usage(format_args!("--xdp {device}: {error}")))
            }
            (Err(TransferError::Xdp(error)), _) => {
                Err(Failure::job(format_args!("--xdp {device}: {error}")))
            }
            (Err(error @ TransferError::DataSocket(_)), Some(port)) => {
                Err(Failure::job(format_args!("--data-port {port}: {error}")))
            }
            (bound, _) => Ok(bound?),
        }
    }
}

/// How a device was used, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct XdpReport {
    pub device: String,
    pub driver: String,
    pub queues: usize,
    /// Whether the card reads and writes packets where they are.
    pub zero_copy: bool,
    /// Where the program runs that finds the packets: `native`, in the driver, or `generic`.
    pub hook: &'static str,
    /// Packets of this process so far, by AF_XDP and by the kernel's stack.
    pub sent: u64,
    pub received: u64,
    /// Packets that arrived by AF_XDP and were dropped, because this process was too slow.
    pub dropped: u64,
    pub kernel_sent: u64,
    pub kernel_received: u64,
}

impl XdpReport {
    pub fn new(used: &XdpUse) -> Self {
        Self {
            device: used.status.device.clone(),
            driver: used.status.driver.clone(),
            queues: used.status.queues,
            zero_copy: used.status.zero_copy,
            hook: match used.status.hook {
                XdpHook::Native => "native",
                XdpHook::Generic => "generic",
            },
            sent: used.sent,
            received: used.received,
            dropped: used.dropped,
            kernel_sent: used.kernel_sent,
            kernel_received: used.kernel_received,
        }
    }

    /// Packets so far, for people.
    pub fn line(&self) -> String {
        let Self {
            device,
            sent,
            received,
            kernel_sent,
            kernel_received,
            ..
        } = self;
        let hint = match (*sent, *kernel_sent) {
            (0, 1..) => ": `ip route get` tells by which device a border router is reached",
            _ => "",
        };
        format!(
            "  AF_XDP on {device}: {sent} packets sent, {received} received; \
             by the kernel {kernel_sent} and {kernel_received}{hint}"
        )
    }
}
