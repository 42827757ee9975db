//! Headings of the help under which flags stand that are rarely needed: `-h` leaves them out.

/// How paths are chosen.
pub const PATHS: &str = "Choosing paths";
/// How this host gets into its network.
pub const HOST: &str = "This host";
/// Which files are transferred, and what of them.
pub const FILES: &str = "Files";
/// How content leaves and arrives.
pub const TRANSPORT: &str = "Sending and receiving";
/// How peers are found.
pub const FINDING: &str = "Finding peers";
/// What a daemon does by itself.
pub const AUTOMATION: &str = "Adding and completing torrents";
/// All other flags that are rarely needed.
pub const RARE: &str = "Rarely needed";
