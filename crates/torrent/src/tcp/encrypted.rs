//! A TCP stream encrypted with RC4.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hawser_mse::Cipher;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Output;

/// Most bytes that are encrypted before they are sent.
const BUFFER: usize = 64 << 10;

/// The direction in which the peer sends: decrypted where it is read to.
pub(super) struct EncryptedRead<R> {
    pub inner: R,
    pub cipher: Cipher,
}

impl<R: AsyncRead + Unpin> AsyncRead for EncryptedRead<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.cipher.apply(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

/// The direction in which this side sends. The bytes to send are those of the caller, who may need
/// them unchanged: they are copied, up to [`BUFFER`] at once.
pub(super) struct EncryptedWrite<W> {
    inner: W,
    cipher: Cipher,
    /// Encrypted bytes.
    buffer: Vec<u8>,
    /// How many of them were sent.
    sent: usize,
}

impl<W: AsyncWrite + Unpin> EncryptedWrite<W> {
    pub fn new(inner: W, cipher: Cipher) -> Self {
        Self {
            inner,
            cipher,
            buffer: Vec::new(),
            sent: 0,
        }
    }

    /// Sends what is encrypted.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.buffer.len() {
            let rest = &self.buffer[self.sent..];
            match ready!(Pin::new(&mut self.inner).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        self.buffer.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for EncryptedWrite<W> {
    /// Takes bytes once those taken before are sent, and sends as many of them as possible;
    /// [`Self::poll_flush`] sends the rest.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        let taken = &bytes[..bytes.len().min(BUFFER)];
        this.buffer.extend_from_slice(taken);
        this.cipher.apply(&mut this.buffer);
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(taken.len())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

impl<W: AsyncWrite + Send + Unpin> Output for EncryptedWrite<W> {}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use hawser_mse::{Ciphers, Crypto, Initiator, Methods, Policy, Responder};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// The ciphers of both sides.
    fn ciphers() -> [Ciphers; 2] {
        let mut random = Rng::with_seed(1);
        let mut a = Initiator::new([1; 20], Methods(2), Vec::new(), &mut random).unwrap();
        let mut b = Responder::new(Policy::Require, &mut random);
        let [mut of_a, mut of_b] = [None, None];
        for _ in 0..2 {
            let received = b.receive(&a.take_output(), |shown| shown.find(&[[1; 20]]));
            of_b = of_b.or(received.unwrap().established);
            of_a = of_a.or(a.receive(&b.take_output()).unwrap().established);
        }
        [of_a, of_b].map(|side| match side.expect("established").crypto {
            Crypto::Rc4(ciphers) => *ciphers,
            Crypto::Plain => panic!("RC4 was required"),
        })
    }

    #[tokio::test]
    async fn bytes_arrive_as_they_were_sent_whatever_the_room() {
        for room in [1, 7, 1000, 1 << 20] {
            let [ours, theirs] = ciphers();
            let (a, b) = duplex(room);
            let mut write = EncryptedWrite::new(a, ours.write);
            let mut read = EncryptedRead {
                inner: b,
                cipher: theirs.read,
            };
            let mut data = vec![0; if room == 1 { 3000 } else { 300_000 }];
            Rng::with_seed(room as u64).fill(&mut data);
            let sending = async {
                for part in data.chunks(100_000) {
                    write.write_all(part).await.unwrap();
                }
                write.shutdown().await.unwrap();
            };
            let mut received = Vec::new();
            let receiving = read.read_to_end(&mut received);
            let ((), received_bytes) = tokio::join!(sending, receiving);
            assert_eq!(received_bytes.unwrap(), data.len());
            assert!(received == data);
        }
    }

    #[tokio::test]
    async fn a_bounded_part_waits_for_room() {
        let [ours, _] = ciphers();
        let (a, b) = duplex(10);
        let mut write = EncryptedWrite::new(a, ours.write);
        let taken = write.write(&vec![0; 1 << 20]).await.unwrap();
        assert_eq!(
            (taken, write.buffer.len(), write.sent),
            (BUFFER, BUFFER, 10)
        );
        drop(b);
        assert!(write.flush().await.is_err());
    }
}
