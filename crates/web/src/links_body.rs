//! The answer with all links.

use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;

/// The answer with all links, written once for each revision of the state.
#[derive(Debug, Default)]
pub(crate) struct LinksBody(Mutex<Option<(u64, Bytes)>>);

impl LinksBody {
    /// The answer for a revision: the one that was written last, or what `write` writes.
    ///
    /// # Errors
    /// That of `write`.
    pub fn of<E>(
        &self,
        revision: u64,
        write: impl FnOnce() -> Result<String, E>,
    ) -> Result<Bytes, E> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, body)) = &*written
            && *of == revision
        {
            return Ok(body.clone());
        }
        let body = Bytes::from(write()?);
        *written = Some((revision, body.clone()));
        Ok(body)
    }
}
