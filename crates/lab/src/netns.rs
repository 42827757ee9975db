//! Network and user namespaces: made, entered, told apart.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space,
    unshare_unsafe,
};
use serde::{Deserialize, Serialize};

/// A network namespace, kept alive by holding it open.
#[derive(Debug)]
pub(crate) struct NetNs(OwnedFd);

/// Which network namespace it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NetNsId {
    /// Its number in `/proc/PID/ns/net`. Given to another one soon after it has gone.
    pub inode: u64,
    /// `SO_NETNS_COOKIE` of socket(7): never given twice from boot to boot.
    pub cookie: u64,
}

impl NetNs {
    /// Makes a namespace with nothing in it but `lo`, down.
    ///
    /// Needs `CAP_SYS_ADMIN` in the caller's user namespace.
    pub fn create() -> io::Result<Self> {
        on_own_thread(|| {
            // SAFETY: CLONE_FILES is not asked for, so that file descriptors stay shared among all
            // threads.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(Self(open_namespace("/proc/thread-self/ns/net")?))
        })?
    }

    /// Runs something inside, on a thread of its own.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            enter_net(self.0.as_fd())?;
            Ok(job())
        })?
    }

    /// Which namespace it is.
    pub fn id(&self) -> io::Result<NetNsId> {
        let inode = rustix::fs::fstat(&self.0)?.st_ino;
        let cookie = self.run(own_cookie)??;
        Ok(NetNsId { inode, cookie })
    }

    /// The descriptor that a process passes to setns(2).
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Threads cannot always go back to the namespace that they came from, so each piece of work gets
/// one that ends with it.
fn on_own_thread<T: Send>(job: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, job)?
            .join()
            .map_err(|_| io::Error::other("the thread inside the namespace panicked"))
    })
}

/// Opens a namespace's file under `/proc`.
pub(crate) fn open_namespace(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| {
        let e = io::Error::from(e);
        io::Error::new(e.kind(), format!("{path}: {e}"))
    })
}

/// Moves the calling thread into a network namespace. Makes no allocation.
pub(crate) fn enter_net(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(
        fd,
        Some(LinkNameSpaceType::Network),
    )?)
}

/// Moves the calling process, which must have one thread, into a user namespace. Makes no
/// allocation.
pub(crate) fn enter_user(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(
        fd,
        Some(LinkNameSpaceType::User),
    )?)
}

/// Whether it is the user namespace of this process.
pub(crate) fn is_own_user(fd: BorrowedFd<'_>) -> bool {
    let own = inode_of(std::process::id() as i32, "user");
    rustix::fs::fstat(fd).is_ok_and(|stat| Some(stat.st_ino) == own)
}

/// Whether this process may make network namespaces as it is.
pub(crate) fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Puts this process, which must have one thread, into a user namespace of its own, where it is
/// root and the only user.
pub(crate) fn become_root_of_own() -> io::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    // SAFETY: CLONE_FILES is not asked for, so that file descriptors stay shared among all threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // user_namespaces(7): without CAP_SETGID outside, setgroups(2) must be given up before a gid
    // may be mapped.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// The inode of a process's namespace, `net` or `user`. None when the process has gone, or belongs
/// to someone else.
pub(crate) fn inode_of(pid: i32, kind: &str) -> Option<u64> {
    Path::new(&format!("/proc/{pid}/ns/{kind}"))
        .metadata()
        .ok()
        .map(|meta| meta.ino())
}

/// The network namespace of this process; none where `/proc` does not show it.
pub(crate) fn own() -> io::Result<Option<NetNsId>> {
    let Some(inode) = inode_of(std::process::id() as i32, "net") else {
        return Ok(None);
    };
    let cookie = own_cookie()?;
    Ok(Some(NetNsId { inode, cookie }))
}

/// The cookie of the calling thread's network namespace.
fn own_cookie() -> io::Result<u64> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the two pointers are to a u64 and its size, which outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(cookie)
}

/// The cookie of another process's network namespace, entered by a child process: without root its
/// user namespace has to be entered first, which no process with threads may do. None when it
/// cannot be entered.
pub(crate) fn cookie_of(pid: i32) -> Option<u64> {
    let net = open_namespace(&format!("/proc/{pid}/ns/net")).ok()?;
    let foreign = inode_of(pid, "user")? != inode_of(std::process::id() as i32, "user")?;
    let user = match foreign {
        true => Some(open_namespace(&format!("/proc/{pid}/ns/user")).ok()?),
        false => None,
    };
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    // SAFETY: the child makes system calls only, without allocating or taking a lock that another
    // thread may have held, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            let cookie = match user.map_or(Ok(()), |fd| enter_user(fd.as_fd())) {
                Ok(()) => enter_net(net.as_fd()).and_then(|()| own_cookie()),
                Err(e) => Err(e),
            };
            if let Ok(cookie) = cookie {
                let _ = rustix::io::write(&write, &cookie.to_ne_bytes());
            }
            // SAFETY: ends the child at once, running nothing of the parent's.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(write);
            let mut bytes = [0; 8];
            let got = rustix::io::retry_on_intr(|| rustix::io::read(&read, &mut bytes[..]));
            let child = rustix::process::Pid::from_raw(child);
            // Reaps it; an error means that someone else did.
            let _ = rustix::io::retry_on_intr(|| waitpid(child, WaitOptions::empty()));
            (got == Ok(8)).then(|| u64::from_ne_bytes(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Namespaces need root; the whole-lab tests do the rest as a user.
    fn privileged() -> bool {
        let privileged = is_privileged();
        if !privileged {
            eprintln!("skipped: needs root");
        }
        privileged
    }

    #[test]
    fn namespaces_are_told_apart() {
        if !privileged() {
            return;
        }
        let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let (a_id, b_id) = (a.id().unwrap(), b.id().unwrap());
        assert_ne!(a_id.inode, b_id.inode);
        assert_ne!(a_id.cookie, b_id.cookie);
        assert_eq!(a.id().unwrap(), a_id);
        let here = inode_of(std::process::id() as i32, "net").unwrap();
        assert_ne!(a_id.inode, here);
    }

    #[test]
    fn a_process_inside_is_recognised() {
        if !privileged() {
            return;
        }
        let ns = NetNs::create().unwrap();
        let id = ns.id().unwrap();
        let mut child = ns
            .run(|| Command::new("sleep").arg("1000").spawn())
            .unwrap()
            .unwrap();
        let pid = child.id() as i32;
        let found = (inode_of(pid, "net"), cookie_of(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, (Some(id.inode), Some(id.cookie)));
        assert_ne!(cookie_of(std::process::id() as i32), Some(id.cookie));
        assert_eq!(cookie_of(pid), None);
    }
}
