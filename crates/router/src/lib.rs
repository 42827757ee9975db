//! A SCION border router.
