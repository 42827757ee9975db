//! The bytes of the step of the handshake that is awaited.

use super::MAX_PAD;
use super::outcome::HandshakeError;

/// The bytes received of one step. It takes no byte of the next.
#[derive(Debug, Default)]
pub(super) struct Input(Vec<u8>);

impl Input {
    /// Takes bytes until there are `wanted`, and returns them then.
    pub fn take(&mut self, from: &mut &[u8], wanted: usize) -> Option<Vec<u8>> {
        let missing = wanted.saturating_sub(self.0.len());
        let (taken, rest) = from.split_at(missing.min(from.len()));
        self.0.extend_from_slice(taken);
        *from = rest;
        (self.0.len() >= wanted).then(|| std::mem::take(&mut self.0))
    }

    /// As [`Self::take`], for a number of bytes that is part of the type.
    pub fn take_array<const N: usize>(&mut self, from: &mut &[u8]) -> Option<[u8; N]> {
        self.take(from, N)?.try_into().ok()
    }

    /// Takes bytes to the end of `pattern`, which a pad may precede. Returns whether it was found.
    ///
    /// # Errors
    /// If it does not follow the longest pad.
    pub fn seek(&mut self, from: &mut &[u8], pattern: &[u8]) -> Result<bool, HandshakeError> {
        while let Some((first, rest)) = from.split_first() {
            self.0.push(*first);
            *from = rest;
            if self.0.ends_with(pattern) {
                self.0.clear();
                return Ok(true);
            }
            if self.0.len() >= MAX_PAD + pattern.len() {
                return Err(HandshakeError::NoSync);
            }
        }
        Ok(false)
    }

    /// Number of bytes that are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
