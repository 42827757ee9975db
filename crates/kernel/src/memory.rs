//! Memory of this process.

/// Returns freed memory to the system. glibc keeps free memory between blocks in use; other C
/// libraries return it by themselves.
pub fn release() {
    // SAFETY: malloc_trim may be called at any time, from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
