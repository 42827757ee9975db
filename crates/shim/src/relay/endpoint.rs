//! Ends of connections that are copied: those that tokio watches all the time, and those that it does not
//! while another process copies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpStream;

/// A connection that is read and written without blocking.
pub(crate) trait Endpoint: AsFd + Sync {
    /// Waits until there may be something to read.
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;
    /// Waits until there may be room to write.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;
    /// Reads what is there; 0 at the end of the stream.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes what there is room for.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Endpoint for TcpStream {
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send {
        Self::readable(self)
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send {
        Self::writable(self)
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, buffer)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }
}

/// A connection that tokio watches only while this process waits for it: a watch wakes the process for
/// all that arrives, whether or not a task waits. The watch has a descriptor of its own.
pub(crate) struct Watched {
    socket: OwnedFd,
    watch: Mutex<Option<Arc<TcpStream>>>,
}

impl Watched {
    /// A socket that does not block.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            watch: Mutex::default(),
        }
    }

    /// The connection of `stream`, which is watched from the start.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn from_tokio(stream: TcpStream) -> io::Result<Self> {
        Ok(Self {
            socket: stream.as_fd().try_clone_to_owned()?,
            watch: Mutex::new(Some(Arc::new(stream))),
        })
    }

    /// Watches no longer, until the next call that waits, reads or writes.
    pub(crate) fn unwatch(&self) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The error that the connection has, if any; it is reported once.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = rustix::net::sockopt::socket_error(&self.socket)?;
        Ok(error.err().map(io::Error::from))
    }

    fn watch(&self) -> io::Result<Arc<TcpStream>> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = &*watch {
            return Ok(Arc::clone(watch));
        }
        let again = self.socket.try_clone()?;
        let new = Arc::new(TcpStream::from_std(again.into())?);
        *watch = Some(Arc::clone(&new));
        Ok(new)
    }
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Must be called inside a tokio runtime.
impl Endpoint for Watched {
    async fn readable(&self) -> io::Result<()> {
        self.watch()?.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.watch()?.writable().await
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch()?.try_read(buffer)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.watch()?.try_write(bytes)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_socket_is_read_before_and_after_it_was_not_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (other, accepted) = tokio::join!(connecting, listener.accept());
        let mut other = other.unwrap();
        let watched = Watched::from_tokio(accepted.unwrap().0).unwrap();
        let mut buffer = [0; 8];
        for _ in 0..3 {
            other.write_all(b"word").await.unwrap();
            loop {
                watched.readable().await.unwrap();
                match watched.try_read(&mut buffer) {
                    Ok(4) => break,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(&buffer[..4], b"word");
            // Until it is waited for again, the runtime knows nothing of it.
            watched.unwatch();
            assert!(watched.watch.lock().unwrap().is_none());
        }
        watched.writable().await.unwrap();
        assert_eq!(watched.try_write(b"answer").unwrap(), 6);
        assert!(watched.take_error().unwrap().is_none());
    }
}
