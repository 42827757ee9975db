//! Control messages of recvmsg(2) that rustix does not know.

use std::ptr;

/// The payload of the first control message of a level and type that a received message came with;
/// `None` when there is none, or it is shorter than a `T`.
///
/// # Safety
/// `message` must be as recvmsg(2) or recvmmsg(2) has filled it in, with its control buffer still
/// there, and every bit pattern must be a valid `T`.
pub unsafe fn find<T: Copy>(message: &libc::msghdr, level: i32, kind: i32) -> Option<T> {
    // SAFETY: the macros of cmsg(3) stay inside the control buffer, which the kernel has filled in;
    // the length of the payload is checked before it is read.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let found = &*header;
            if (found.cmsg_level, found.cmsg_type) == (level, kind) {
                let needed = libc::CMSG_LEN(size_of::<T>() as u32) as usize;
                let enough = found.cmsg_len as usize >= needed;
                return enough.then(|| ptr::read_unaligned(libc::CMSG_DATA(header).cast()));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}
