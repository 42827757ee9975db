//! The user that the token in the folder of the state stands for.

/// The name of the user that the daemon's own token stands for: it may do all that the daemon may.
pub const OWNER: &str = "owner";
