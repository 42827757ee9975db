//! Distribution of the packets that arrive at one address among several sockets, by flow.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use hawser_kernel::socket::checked;
use hawser_packet::number::next_header;

use crate::flow::{FACTOR, HOSTS, LABEL, NEXT_HEADER};

/// Instructions of classic BPF (linux/bpf_common.h).
mod code {
    use libc::{BPF_A, BPF_AND, BPF_MUL, BPF_RSH, BPF_TAX, BPF_W, BPF_X, BPF_XOR};
    use libc::{BPF_ABS, BPF_ALU, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MISC, BPF_RET};

    pub const LOAD_BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    pub const LOAD_WORD: u32 = BPF_LD | BPF_W | BPF_ABS;
    pub const JUMP_IF_EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
    pub const AND: u32 = BPF_ALU | BPF_AND | BPF_K;
    pub const MULTIPLY: u32 = BPF_ALU | BPF_MUL | BPF_K;
    pub const SHIFT_RIGHT: u32 = BPF_ALU | BPF_RSH | BPF_K;
    pub const XOR_X: u32 = BPF_ALU | BPF_XOR | BPF_X;
    pub const COPY_TO_X: u32 = BPF_MISC | BPF_TAX;
    pub const RETURN: u32 = BPF_RET | BPF_K;
    pub const RETURN_A: u32 = BPF_RET | BPF_A;
}

/// Makes the kernel deliver each packet to one of `count` sockets that are bound to the address of
/// `socket` with SO_REUSEPORT, in the order in which they were bound: to the one with the number
/// [`flow::thread`](crate::flow::thread).
pub(super) fn distribute(socket: &UdpSocket, count: usize) -> io::Result<()> {
    let step = |code: u32, k: u32| (code, 0, k);
    let mut steps = vec![
        step(code::LOAD_BYTE, NEXT_HEADER as u32),
        // Skips the return if it is not BFD.
        (code::JUMP_IF_EQUAL, 1, next_header::BFD.into()),
        step(code::RETURN, 0),
        step(code::LOAD_WORD, 0),
        step(code::AND, LABEL),
        step(code::MULTIPLY, FACTOR),
    ];
    // A load beyond the end of the packet ends the program with 0.
    for at in HOSTS {
        steps.extend([
            step(code::COPY_TO_X, 0),
            step(code::LOAD_WORD, at as u32),
            step(code::XOR_X, 0),
            step(code::MULTIPLY, FACTOR),
        ]);
    }
    steps.extend([
        step(code::SHIFT_RIGHT, 16),
        step(code::MULTIPLY, count as u32),
        step(code::SHIFT_RIGHT, 16),
        step(code::RETURN_A, 0),
    ]);
    let mut filter: Vec<_> = steps
        .into_iter()
        .map(|(code, jf, k)| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf,
            k,
        })
        .collect();
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program and its instructions during the call only, at their true
    // lengths.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of_val(&program) as libc::socklen_t,
        )
    })?;
    Ok(())
}
