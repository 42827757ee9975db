//! Giving memory back to the system.

/// Gives freed memory back. glibc keeps what lies between blocks in use; other C libraries give
/// memory back on their own.
pub(crate) fn give_back() {
    // SAFETY: malloc_trim may be called at any time, from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
