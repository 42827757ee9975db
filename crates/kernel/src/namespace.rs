//! Network and user namespaces (namespaces(7)): creating, entering and identifying them.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space,
    unshare_unsafe,
};
use serde::{Deserialize, Serialize};

use crate::socket;

/// A network namespace, which exists at least until this is dropped.
#[derive(Debug)]
pub struct NetNs(OwnedFd);

/// The identity of a network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetNsId {
    /// The inode number of `/proc/PID/ns/net`. The kernel soon reuses it after the namespace is
    /// gone.
    pub inode: u64,
    /// `SO_NETNS_COOKIE` of socket(7): unique until the next boot.
    pub cookie: u64,
}

/// A kind of namespace, as the files in `/proc/PID/ns` name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceKind {
    /// A network namespace.
    Net,
    /// A user namespace.
    User,
}

impl NamespaceKind {
    /// The file of a process's namespace.
    fn path(self, process: impl Display) -> String {
        match self {
            Self::Net => format!("/proc/{process}/ns/net"),
            Self::User => format!("/proc/{process}/ns/user"),
        }
    }
}

impl NetNs {
    /// Creates a namespace that contains only `lo`, which is down.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN` in the caller's user namespace.
    pub fn create() -> io::Result<Self> {
        on_own_thread(|| {
            // SAFETY: CLONE_FILES is not requested, so that file descriptors stay shared among all
            // threads.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(Self(open(&NamespaceKind::Net.path("thread-self"))?))
        })?
    }

    /// Opens the namespace that a file names, such as `/proc/PID/ns/net` or `/run/netns/NAME`.
    ///
    /// # Errors
    /// When the file cannot be opened; [`io::ErrorKind::InvalidInput`] when it names no network
    /// namespace.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe must not wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        Self::from_fd(file)
    }

    /// The namespace of a descriptor, as another process sends it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when it is not that of a network namespace.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        // NS_GET_NSTYPE of ioctl_nsfs(2): the CLONE_* constant of the namespace's kind.
        const NS_GET_NSTYPE: libc::Ioctl = 0xb703;
        // SAFETY: the request takes no argument, and refuses descriptors of other files.
        let kind = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE) };
        match kind == libc::CLONE_NEWNET {
            true => Ok(Self(fd)),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a network namespace",
            )),
        }
    }

    /// Runs `job` inside the namespace, on a new thread.
    ///
    /// # Errors
    /// Without the right to enter it, or when `job` panics.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| {
            enter_net(self.0.as_fd())?;
            Ok(job())
        })?
    }

    /// The identity of the namespace.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn id(&self) -> io::Result<NetNsId> {
        let inode = rustix::fs::fstat(&self.0)?.st_ino;
        let cookie = self.run(cookie)??;
        Ok(NetNsId { inode, cookie })
    }
}

/// The descriptor for setns(2).
impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Runs `job` on a new thread: a thread cannot always return to the namespace that it came from.
fn on_own_thread<T: Send>(job: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, job)?
            .join()
            .map_err(|_| io::Error::other("the thread inside the namespace panicked"))
    })
}

fn open(path: &str) -> io::Result<OwnedFd> {
    let opened = File::open(path).map(OwnedFd::from);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// Opens the user namespace of this process.
///
/// # Errors
/// When `/proc` does not show it.
pub fn open_own_user() -> io::Result<OwnedFd> {
    open(&NamespaceKind::User.path("self"))
}

/// Moves the calling thread into a network namespace. Does not allocate, so that it may be called
/// between fork and exec.
///
/// # Errors
/// Without `CAP_SYS_ADMIN` in the user namespaces of the process and of the network namespace.
pub fn enter_net(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(namespace, kind)?)
}

/// Moves the calling process into a user namespace. Does not allocate, like [`enter_net`].
///
/// # Errors
/// When the process has more than one thread, is in that namespace already, or may not enter it.
pub fn enter_user(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let kind = Some(LinkNameSpaceType::User);
    Ok(move_into_link_name_space(namespace, kind)?)
}

/// Whether `namespace` is the user namespace of this process.
pub fn is_own_user(namespace: BorrowedFd<'_>) -> bool {
    let own = inode_of(own_pid(), NamespaceKind::User);
    rustix::fs::fstat(namespace).is_ok_and(|stat| Some(stat.st_ino) == own)
}

/// Whether this process may create network namespaces without creating a user namespace first.
pub fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Whether this process may change the devices, routes and packet filters of its network namespace.
pub fn may_change_network() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

/// Moves this process into a new user namespace, where it is root and the only user.
///
/// # Errors
/// When the process has more than one thread, or the system does not allow user namespaces.
pub fn become_root_of_own() -> io::Result<()> {
    move_into_own_user(Some(0))
}

/// Moves this process into a new user namespace, where it has all rights, and its user and group
/// are the only ones and keep their numbers. Programs that it starts have no more rights than
/// before.
///
/// # Errors
/// When the process has more than one thread, or the system does not allow user namespaces.
pub fn become_owner_of_own() -> io::Result<()> {
    move_into_own_user(None)
}

/// Whether a process of this user may create a user namespace: lets a short-lived one try.
///
/// # Errors
/// The reason why not.
pub fn try_own_user() -> io::Result<()> {
    let mut command = std::process::Command::new("/proc/self/exe");
    // SAFETY: between fork and exec it only makes a system call. It always fails, so that nothing is
    // executed: with this error if it could create the namespace.
    unsafe {
        command.pre_exec(|| {
            unshare_unsafe(UnshareFlags::NEWUSER)?;
            Err(io::Error::from_raw_os_error(libc::ECANCELED))
        })
    };
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => child.wait().map(drop),
    }
}

/// Moves this process into a new user namespace, where its user and group have the number `id`, or
/// their own.
fn move_into_own_user(id: Option<u32>) -> io::Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    // SAFETY: CLONE_FILES is not requested, so that file descriptors stay shared among all threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // user_namespaces(7): without CAP_SETGID outside, setgroups(2) must be given up before a gid
    // may be mapped.
    std::fs::write("/proc/self/setgroups", "deny")?;
    let map = |number: u32| format!("{} {number} 1", id.unwrap_or(number));
    std::fs::write("/proc/self/uid_map", map(uid))?;
    std::fs::write("/proc/self/gid_map", map(gid))
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The inode of a process's namespace; `None` if the process has ended or belongs to another user.
pub fn inode_of(pid: i32, kind: NamespaceKind) -> Option<u64> {
    let file = Path::new(&kind.path(pid)).metadata().ok()?;
    Some(file.ino())
}

/// The network namespace of this process; `None` if `/proc` does not show it.
///
/// # Errors
/// When the kernel does not report its cookie.
pub fn own_net() -> io::Result<Option<NetNsId>> {
    let inode = inode_of(own_pid(), NamespaceKind::Net);
    let id = inode.map(|inode| cookie().map(|cookie| NetNsId { inode, cookie }));
    id.transpose()
}

/// The cookie of the calling thread's network namespace.
fn cookie() -> io::Result<u64> {
    let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    socket::option(&socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE).map(u64::from_ne_bytes)
}

/// The cookie of another process's network namespace; `None` if this process may not enter it.
///
/// A child process enters the namespace: without root it must first enter the other process's user
/// namespace, which a process with several threads cannot do.
pub fn cookie_of(pid: i32) -> Option<u64> {
    let net = open(&NamespaceKind::Net.path(pid)).ok()?;
    let foreign = inode_of(pid, NamespaceKind::User)? != inode_of(own_pid(), NamespaceKind::User)?;
    let user = match foreign {
        true => Some(open(&NamespaceKind::User.path(pid)).ok()?),
        false => None,
    };
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    // SAFETY: the child makes system calls only, without allocating or taking a lock that another
    // thread may have held, and leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            let cookie = user
                .map_or(Ok(()), |user| enter_user(user.as_fd()))
                .and_then(|()| enter_net(net.as_fd()))
                .and_then(|()| cookie());
            if let Ok(cookie) = cookie {
                let _ = rustix::io::write(&write, &cookie.to_ne_bytes());
            }
            // SAFETY: ends the child at once, without running exit handlers of the parent.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(write);
            let mut bytes = [0; 8];
            let got = rustix::io::retry_on_intr(|| rustix::io::read(&read, &mut bytes[..]));
            let child = rustix::process::Pid::from_raw(child);
            // Reaps the child; an error means that another thread already did.
            let _ = rustix::io::retry_on_intr(|| waitpid(child, WaitOptions::empty()));
            (got == Ok(8)).then(|| u64::from_ne_bytes(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Whether this process may create namespaces; if not, only the tests of whole labs cover them.
    fn privileged() -> bool {
        let privileged = is_privileged();
        if !privileged {
            eprintln!("skipped: needs root");
        }
        privileged
    }

    #[test]
    fn namespaces_have_distinct_ids() {
        if !privileged() {
            return;
        }
        let (a, b) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let (a_id, b_id) = (a.id().unwrap(), b.id().unwrap());
        assert_ne!(a_id.inode, b_id.inode);
        assert_ne!(a_id.cookie, b_id.cookie);
        assert_eq!(a.id().unwrap(), a_id);
        let here = inode_of(own_pid(), NamespaceKind::Net).unwrap();
        assert_ne!(a_id.inode, here);
    }

    #[test]
    fn a_namespace_is_opened_by_its_file_and_nothing_else_is() {
        let own = NetNs::open(Path::new("/proc/self/ns/net")).unwrap();
        let inode = inode_of(own_pid(), NamespaceKind::Net);
        assert_eq!(rustix::fs::fstat(&own.0).ok().map(|s| s.st_ino), inode);
        for wrong in ["/proc/self/ns/user", "/proc/self/stat", "/dev/null", "/"] {
            let error = NetNs::open(Path::new(wrong)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
        let missing = NetNs::open(Path::new("/proc/self/ns/none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
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
        let found = (inode_of(pid, NamespaceKind::Net), cookie_of(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, (Some(id.inode), Some(id.cookie)));
        assert_ne!(cookie_of(own_pid()), Some(id.cookie));
        assert_eq!(cookie_of(pid), None);
    }
}
