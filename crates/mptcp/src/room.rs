//! Room for what a connection receives.

use std::io;
use std::os::fd::AsFd;

use hawser_kernel::socket;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// `SO_MEMINFO` of socket(7).
const SO_MEMINFO: i32 = 55;
/// The places of `SK_MEMINFO_RMEM_ALLOC` and `SK_MEMINFO_RCVBUF` in it, in bytes.
const USED: usize = 0;
const LIMIT: usize = 4;

/// Whether there is something to read, which poll(2) may not have reported, or the end of the
/// stream. Has a connection go on whose receive buffer is full although there is nothing to read: it
/// may have `bytes` from then on.
///
/// Linux 6.18 and earlier leave what arrives at the subflows there while the buffer is full of data
/// behind a gap, also what fills the gap. Then nothing arrives any more. That happens after
/// subflows died: much arrives behind a gap then, and small packets take more of the buffer than
/// their bytes, while the window that is announced counts bytes.
///
/// # Errors
/// When `socket` is not a socket, or its connection is broken.
pub fn has_received(socket: impl AsFd, bytes: usize) -> io::Result<bool> {
    let memory: [u8; 8] = socket::option(&socket, libc::SOL_SOCKET, SO_MEMINFO)?;
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&memory[at..at + 4]);
        u32::from_ne_bytes(bytes)
    };
    if number(USED) >= number(LIMIT) {
        // The kernel doubles it, for what it needs itself.
        socket::set_receive_buffer(&socket, bytes / 2)?;
    }
    // This has the kernel look at the subflows.
    let looked = recv(&socket, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    match looked {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_full_buffer_is_raised_and_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        let limit = || -> u32 {
            let value = socket::option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUF);
            u32::from_ne_bytes(value.unwrap())
        };
        socket::set_receive_buffer(&receiver, 4096).unwrap();
        let before = limit();
        assert!(!has_received(&receiver, 1 << 18).unwrap());
        assert_eq!(limit(), before);
        // The kernel takes a packet as long as there is any room.
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[7; 4096]).is_ok() {}
        let used = || -> u32 {
            let memory: [u8; 4] = socket::option(&receiver, libc::SOL_SOCKET, SO_MEMINFO).unwrap();
            u32::from_ne_bytes(memory)
        };
        let is_full = used() >= before;
        assert!(has_received(&receiver, 1 << 18).unwrap());
        assert_eq!(limit() > before, is_full);
    }
}
