//! Where the C library looks names up.

/// Has names of hosts looked up in `/etc/hosts` and DNS, and those of users in `/etc/passwd`,
/// whatever `/etc/nsswitch.conf` says: the other sources that it may name are plugins, built for
/// the glibc of the system, and a program that is linked with a glibc of its own can crash by
/// loading them. Changes nothing in a program that uses the system's C library.
///
/// To be called before the first look-up.
pub fn look_up_without_plugins() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    for (database, sources) in [(c"hosts", c"files dns"), (c"passwd", c"files")] {
        use std::ffi::{c_char, c_int};

        unsafe extern "C" {
            /// glibc, `nss/nss_database.c`.
            fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
        }

        // It fails for lack of memory alone; look-ups are then as the system configures them.
        // SAFETY: both are strings that end with a zero byte, of which glibc keeps none.
        unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
    }
}
