//! The system call bpf(2): a map of sockets, a program, and its link to a device.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use hawser_kernel::socket::checked;

use crate::filter::Instruction;

// Commands (`enum bpf_cmd`).
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;

/// `BPF_MAP_TYPE_XSKMAP`, `BPF_PROG_TYPE_XDP` and the attach type `BPF_XDP`.
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;

// Flags of links (`XDP_FLAGS_SKB_MODE`, `XDP_FLAGS_DRV_MODE`).
const SKB_MODE: u32 = 1 << 1;
const DRV_MODE: u32 = 1 << 2;

/// Where the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In the device's driver.
    Native,
    /// In the kernel, between driver and stack.
    Generic,
}

/// A map from receive queues to AF_XDP sockets.
#[derive(Debug)]
pub(crate) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map for `queues` queues.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn new(queues: u32) -> io::Result<Self> {
        #[repr(C)]
        struct Create {
            map_type: u32,
            key_size: u32,
            value_size: u32,
            max_entries: u32,
            map_flags: u32,
        }
        let mut create = Create {
            map_type: MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            map_flags: 0,
        };
        // SAFETY: the attributes contain no pointers.
        unsafe { open(MAP_CREATE, &mut create) }.map(Self)
    }

    /// Has packets of `queue` go to `socket`.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn set(&self, queue: u32, socket: impl AsFd) -> io::Result<()> {
        #[repr(C)]
        struct Update {
            map: RawFd,
            _padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = socket.as_fd().as_raw_fd();
        let mut update = Update {
            map: self.0.as_raw_fd(),
            _padding: 0,
            key: &raw const queue as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        // SAFETY: key and value have the sizes with which the map was made, and outlive the call.
        unsafe { call(MAP_UPDATE_ELEM, &mut update) }?;
        Ok(())
    }

    /// The number by which a program refers to the map while it is loaded.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A program in the kernel.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// Has the kernel verify and load a program. The maps that it refers to stay as long as it.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn load(instructions: &[Instruction]) -> io::Result<Self> {
        #[repr(C)]
        struct Load {
            prog_type: u32,
            instructions: u32,
            first: u64,
            license: u64,
            log_level: u32,
            log_size: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; 16],
            interface: u32,
            attach_type: u32,
        }
        let license = c"Apache-2.0";
        let mut load = Load {
            prog_type: PROG_TYPE_XDP,
            instructions: instructions.len() as u32,
            first: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name: *b"hawser\0\0\0\0\0\0\0\0\0\0",
            interface: 0,
            attach_type: ATTACH_TYPE_XDP,
        };
        // SAFETY: the instructions are as many as said, the license ends with zero, and both outlive
        // the call. What the program does is the verifier's concern.
        unsafe { open(PROG_LOAD, &mut load) }.map(Self)
    }

    /// Has the program run for every packet that the device with this number receives, until the
    /// link is dropped, or the process ends, however it ends.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn attach(&self, interface: u32, hook: Hook) -> io::Result<Link> {
        #[repr(C)]
        struct Create {
            program: RawFd,
            target: u32,
            attach_type: u32,
            flags: u32,
        }
        let mut create = Create {
            program: self.0.as_raw_fd(),
            target: interface,
            attach_type: ATTACH_TYPE_XDP,
            flags: match hook {
                Hook::Native => DRV_MODE,
                Hook::Generic => SKB_MODE,
            },
        };
        // SAFETY: the attributes contain no pointers.
        unsafe { open(LINK_CREATE, &mut create) }.map(Link)
    }
}

/// A program at a device.
#[derive(Debug)]
#[expect(dead_code, reason = "held for as long as the program is to run")]
pub(crate) struct Link(OwnedFd);

/// Runs a command that returns a descriptor.
///
/// # Safety
/// As for [`call`]; the command must return a descriptor.
unsafe fn open<T>(command: i32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's promise.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: the kernel has just opened it (close-on-exec, as all of bpf(2)), and nobody else knows
    // it. Descriptors are ints.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// Runs a command.
///
/// # Safety
/// `attributes` must be those of the command, the beginning of `union bpf_attr` and without holes,
/// and pointers in them must lead to what the command expects.
unsafe fn call<T>(command: i32, attributes: &mut T) -> io::Result<usize> {
    let size = size_of::<T>() as u32;
    // SAFETY: by the caller's promise; the kernel reads and writes at most `size` bytes, and takes
    // what is missing as zero.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    const PROG_TEST_RUN: i32 = 10;

    impl Program {
        /// What the program returns for `packet` (`BPF_PROG_TEST_RUN`), which it must not change.
        pub(crate) fn test(&self, packet: &[u8]) -> io::Result<i32> {
            #[repr(C)]
            struct Test {
                program: RawFd,
                result: u32,
                size_in: u32,
                size_out: u32,
                data_in: u64,
                data_out: u64,
                repeat: u32,
                duration: u32,
            }
            let mut out = vec![0; packet.len() + 512];
            let mut test = Test {
                program: self.0.as_raw_fd(),
                result: 0,
                size_in: packet.len() as u32,
                size_out: out.len() as u32,
                data_in: packet.as_ptr() as u64,
                data_out: out.as_mut_ptr() as u64,
                repeat: 1,
                duration: 0,
            };
            // SAFETY: both buffers have the given sizes and outlive the call.
            unsafe { call(PROG_TEST_RUN, &mut test) }?;
            assert_eq!(&out[..test.size_out as usize], packet);
            Ok(test.result as i32)
        }
    }
}
