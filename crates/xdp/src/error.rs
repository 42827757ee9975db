//! Why a device cannot be used by AF_XDP.

use std::io;
use std::net::IpAddr;

use hawser_kernel::netlink::NetlinkError;
use rustix::io::Errno;
use thiserror::Error;

/// Why a device cannot be used by AF_XDP.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum XdpError {
    /// There is no such device.
    #[error("there is no network device {0}: `ip link` lists those of this host")]
    NoDevice(String),
    /// The address is another device's.
    #[error("{address} is not an address of {device}{}", hint(.owner.as_deref()))]
    OtherAddress {
        /// The device.
        device: String,
        /// The address of the socket.
        address: IpAddr,
        /// The device that has it.
        owner: Option<String>,
    },
    /// The device has no Ethernet addresses.
    #[error("{0} is not an Ethernet device: AF_XDP is for network cards")]
    NotEthernet(String),
    /// The device is down.
    #[error("{0} is down: `ip link set {0} up`")]
    Down(String),
    /// This process may not do it.
    #[error(
        "AF_XDP on {device} needs root, outside of user namespaces, or the capabilities CAP_BPF, \
         CAP_NET_ADMIN and CAP_NET_RAW: the system does not let this process {action}"
    )]
    NotPermitted {
        /// The device.
        device: String,
        /// What was refused.
        action: &'static str,
    },
    /// Another process has a program at the device.
    #[error(
        "another program uses XDP on {0}, and a device has room for one: `ip link show {0}` names it"
    )]
    InUse(String),
    /// Too little memory may be locked.
    #[error(
        "AF_XDP on {device} takes {bytes} bytes of locked memory: raise the limit (`ulimit -l`), or \
         give the process CAP_IPC_LOCK"
    )]
    Memory {
        /// The device.
        device: String,
        /// Bytes for one queue.
        bytes: u64,
    },
    /// The kernel or the driver cannot do it.
    #[error(
        "the kernel, or its driver {driver} for {device}, cannot {action}: {source}; AF_XDP needs \
         Linux 5.9 with CONFIG_XDP_SOCKETS"
    )]
    Unsupported {
        /// The device.
        device: String,
        /// Its driver.
        driver: String,
        /// What failed.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel says nothing about the device.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

impl XdpError {
    /// Whether another device must be named, or the socket bound elsewhere.
    pub fn is_wrong_device(&self) -> bool {
        matches!(
            self,
            Self::NoDevice(_) | Self::OtherAddress { .. } | Self::NotEthernet(_)
        )
    }

    /// The error of `action` on `device`, which the system has refused with `source`.
    pub(crate) fn refused(
        (device, driver): (&str, &str),
        action: &'static str,
        source: io::Error,
    ) -> Self {
        let device = device.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::PERM | Errno::ACCESS) => Self::NotPermitted { device, action },
            // Of one kind, or of both: native and generic.
            Some(Errno::BUSY | Errno::EXIST) => Self::InUse(device),
            _ => Self::Unsupported {
                device,
                driver: driver.to_owned(),
                action,
                source,
            },
        }
    }
}

fn hint(owner: Option<&str>) -> String {
    match owner {
        Some(owner) => {
            format!(", but of {owner}: name that, or listen at an address of the device")
        }
        None => ": listen at an address of the device".to_owned(),
    }
}
