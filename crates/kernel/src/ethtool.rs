//! Requests about a network device (`SIOCETHTOOL` of netdevice(7), `linux/ethtool.h`): its driver, its
//! receive queues.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::socket::checked;

/// Commands of `linux/ethtool.h`.
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Words of `struct ethtool_drvinfo`; the name of the driver is in the eight after the first.
const DRVINFO_WORDS: usize = 49;
/// Words of `struct ethtool_channels`, and places in it.
const CHANNELS_WORDS: usize = 9;
const RX_COUNT: usize = 5;
const COMBINED_COUNT: usize = 8;

/// The name of the device's driver.
///
/// # Errors
/// When the calling thread's network namespace has no such device, or its driver does not say.
pub fn driver(device: &str) -> io::Result<String> {
    let mut info = [0; DRVINFO_WORDS];
    info[0] = ETHTOOL_GDRVINFO;
    Ethtool::of(device)?.call(&mut info)?;
    let name: Vec<u8> = info[1..9].iter().flat_map(|w| w.to_ne_bytes()).collect();
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// How many receive queues the device uses; 1 if its driver does not say.
///
/// # Errors
/// When the calling thread's network namespace has no such device.
pub fn receive_queues(device: &str) -> io::Result<u32> {
    let mut channels = [0; CHANNELS_WORDS];
    channels[0] = ETHTOOL_GCHANNELS;
    match Ethtool::of(device)?.call(&mut channels) {
        Ok(()) => Ok((channels[RX_COUNT] + channels[COMBINED_COUNT]).max(1)),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::OPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

/// Requests about one device of a network namespace.
pub(crate) struct Ethtool<'a> {
    socket: rustix::fd::OwnedFd,
    device: &'a str,
}

impl<'a> Ethtool<'a> {
    /// Opens the device in the namespace of the calling thread.
    pub(crate) fn of(device: &'a str) -> io::Result<Self> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, device })
    }

    /// Makes a request, which the kernel replaces by its answer. Its first word is the command;
    /// after it the request must have room for all that the kernel answers to that command.
    pub(crate) fn call(&self, request: &mut [u32]) -> io::Result<()> {
        // SAFETY: all zeros is a valid ifreq.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        let name = self.device.as_bytes();
        // One byte is left for the end of the string.
        if name.len() >= ifreq.ifr_name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, &byte) in ifreq.ifr_name.iter_mut().zip(name) {
            *to = byte as libc::c_char;
        }
        ifreq.ifr_ifru.ifru_data = request.as_mut_ptr().cast();
        let socket = self.socket.as_fd().as_raw_fd();
        // SAFETY: the kernel reads and writes `ifreq` and, inside its length as the callers size
        // it, `request`; both outlive the call, and any bits are valid in them.
        checked(unsafe { libc::ioctl(socket, libc::SIOCETHTOOL, &raw mut ifreq) })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_a_queue_and_no_driver() {
        assert_eq!(receive_queues("lo").unwrap(), 1);
        assert!(driver("lo").is_err());
    }

    #[test]
    fn devices_that_do_not_exist_are_refused() {
        let error = receive_queues("hawser-no-such").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let error = driver("a-name-longer-than-any-device").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
