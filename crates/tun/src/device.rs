//! Creating TUN devices: the requests of `linux/if_tun.h`.

use std::ffi::{c_int, c_short};
use std::io;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl, opcode};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::TunError;
use crate::queue::Queue;

/// Requests. Their numbers say `int`, whatever they take.
const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<c_int>(b'T', 208);

/// Flags of `TUNSETIFF`: IP packets, without a header that repeats their protocol, with a vnet header;
/// several queues; a new device or none.
const IFF_TUN: c_short = 0x0001;
const IFF_NO_PI: c_short = 0x1000;
const IFF_VNET_HDR: c_short = 0x4000;
const IFF_MULTI_QUEUE: c_short = 0x0100;
const IFF_TUN_EXCL: c_short = 0x8000_u16 as c_short;

/// Flags of `TUNSETOFFLOAD`: what the reader of the device takes from the kernel.
const TUN_F_CSUM: usize = 0x01;
const TUN_F_TSO4: usize = 0x02;
const TUN_F_TSO6: usize = 0x04;
const TUN_F_TSO_ECN: usize = 0x08;
const TUN_F_USO4: usize = 0x20;
const TUN_F_USO6: usize = 0x40;

/// Most queues of a device: `MAX_TAP_QUEUES` of the kernel's `linux/if_tap.h`.
const MAX_QUEUES: usize = 256;

/// Bytes of a device's name, and a zero byte.
const NAME: usize = 16;

/// `struct ifreq` of netdevice(7), with flags.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: c_short,
    rest: [u8; 22],
}

/// A TUN device that was just created. It is down, has no addresses, and vanishes with the last
/// descriptor of its queues.
#[derive(Debug)]
#[non_exhaustive]
pub struct Tun {
    /// Its queues. The kernel spreads connections over them.
    pub queues: Vec<Queue>,
    /// Its name.
    pub name: String,
    /// Its interface index.
    pub index: u32,
    /// Whether the kernel hands over large packets of UDP too (USO). Before Linux 6.2 it cuts them
    /// itself.
    pub has_uso: bool,
}

impl Tun {
    /// Creates a device in the network namespace of the calling thread, with 1 to 256 queues. In its
    /// name, `%d` stands for the first free number.
    ///
    /// # Errors
    /// [`TunError`]. No device is left then.
    pub fn create(name: &str, queues: usize) -> Result<Self, TunError> {
        if !is_valid(name) {
            return Err(TunError::InvalidName(name.to_owned()));
        }
        if !(1..=MAX_QUEUES).contains(&queues) {
            return Err(TunError::Queues(queues));
        }
        let mut flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
        if queues > 1 {
            flags |= IFF_MULTI_QUEUE;
        }
        let (first, name) = attach(name, flags | IFF_TUN_EXCL)?;
        let has_uso = set_offloads(&first).map_err(failed(&name, "set the offloads of"))?;
        let index = index(&name).map_err(failed(&name, "find"))?;
        let mut all = vec![Queue::from(first)];
        for _ in 1..queues {
            all.push(attach(&name, flags)?.0.into());
        }
        Ok(Self {
            queues: all,
            name,
            index,
            has_uso,
        })
    }
}

/// Whether the kernel takes the name (`dev_valid_name`).
fn is_valid(name: &str) -> bool {
    let is_invalid = |byte: u8| byte == 0 || byte == b'/' || byte == b':' || is_space(byte);
    let has_percent = name.replacen("%d", "", 1).contains('%');
    let is_path = matches!(name, "." | "..");
    (1..NAME).contains(&name.len()) && !name.bytes().any(is_invalid) && !has_percent && !is_path
}

/// As the kernel's `isspace`, which also takes a vertical tab and the no-break space of Latin-1.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0)
}

/// Opens a queue of a device, which the first call creates. Returns the device's name.
fn attach(name: &str, flags: c_short) -> Result<(OwnedFd, String), TunError> {
    let mode = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open("/dev/net/tun", mode, Mode::empty());
    let descriptor = opened.map_err(|error| match error {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => TunError::NoModule,
        Errno::PERM | Errno::ACCESS => TunError::NotOpened,
        error => failed(name, "open /dev/net/tun for")(error),
    })?;
    let mut request = Request {
        name: [0; NAME],
        flags,
        rest: [0; 22],
    };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, in which any bits are valid.
    let set = unsafe { ioctl(&descriptor, Updater::<TUNSETIFF, _>::new(&mut request)) };
    set.map_err(|error| match error {
        Errno::PERM => TunError::NotPermitted(name.to_owned()),
        Errno::BUSY | Errno::EXIST => TunError::NameTaken(name.to_owned()),
        error => failed(name, "create")(error),
    })?;
    let name = request.name.split(|&byte| byte == 0).next();
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    Ok((descriptor, name.into_owned()))
}

/// Sets the offloads of the device. Returns whether large packets of UDP are among them.
fn set_offloads(descriptor: &OwnedFd) -> Result<bool, Errno> {
    let set = |flags: usize| {
        // SAFETY: TUNSETOFFLOAD takes flags by value.
        unsafe { ioctl(descriptor, IntegerSetter::<TUNSETOFFLOAD>::new_usize(flags)) }
    };
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    match set(tcp | TUN_F_USO4 | TUN_F_USO6) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL) => set(tcp).map(|()| false),
        Err(error) => Err(error),
    }
}

fn index(name: &str) -> Result<u32, Errno> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    name_to_index(&socket, name)
}

fn failed(name: &str, action: &'static str) -> impl Fn(Errno) -> TunError {
    let name = name.to_owned();
    move |error| TunError::System {
        name: name.clone(),
        action,
        source: io::Error::from(error),
    }
}
