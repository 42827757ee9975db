//! Returning memory to the system.

/// Returns freed memory to the system. glibc keeps what is between blocks in use; other C libraries
/// return memory on their own.
pub(crate) fn release_memory() {
    // SAFETY: malloc_trim may be called at any time, from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
