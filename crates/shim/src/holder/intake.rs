//! Accepting connections, of which there may not be more than this process has descriptors for.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use crate::budget::{Budget, Permit};
use crate::relay;

/// Accepts connections at `listener`, without end: each that the `budget` has room for is given to
/// `take`, which holds its permit as long as it has descriptors of it; others are reset, after `refuse`
/// has learned of them. Neither must block.
pub(super) async fn accept(
    listener: TcpListener,
    budget: Budget,
    mut take: impl FnMut(TcpStream, SocketAddr, Permit),
    mut refuse: impl FnMut(SocketAddr),
) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => match budget.take() {
                Some(permit) => take(stream, from, permit),
                None => {
                    relay::reset(&stream);
                    refuse(from);
                }
            },
            Err(error) => relay::wait_after(&error).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn connections_beyond_the_budget_are_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (taken, mut accepted) = mpsc::unbounded_channel();
        let (refused, mut refusals) = mpsc::unbounded_channel();
        tokio::spawn(accept(
            listener,
            Budget::new(2),
            move |stream, _, permit| drop(taken.send((stream, permit))),
            move |from| refused.send(from).unwrap(),
        ));
        let connect = || async { TcpStream::connect(address).await.unwrap() };
        let (_first, _second) = (connect().await, connect().await);
        let held = (accepted.recv().await, accepted.recv().await);
        let mut third = connect().await;
        let read = third.read(&mut [0]).await.map_err(|error| error.kind());
        assert_eq!(read, Err(ErrorKind::ConnectionReset));
        assert_eq!(refusals.recv().await, third.local_addr().ok());
        drop(held);
        let _fourth = connect().await;
        assert!(accepted.recv().await.is_some());
    }
}
