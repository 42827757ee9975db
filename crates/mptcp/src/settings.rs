//! The settings of a network namespace.

use std::io;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use crate::check::{MPTCP, Unsupported, check};

/// Where the kernel has TCP's settings of the calling thread's network namespace.
const TCP: &str = "/proc/sys/net/ipv4";
/// Up to how many bytes buffers grow, unless set otherwise: enough for 2.5 Gbit/s at a round-trip
/// time of 200 ms.
pub const BUFFER_LIMIT: u32 = 64 << 20;

/// Longest retransmission timeout, in milliseconds, and for how many of them a subflow without an answer
/// stays. A connection of which one side has ended its direction gets no new subflow: when its path has
/// been dead for long and works again, TCP must notice soon. Together at least as long as a connection
/// waits for a subflow.
const RTO_MAX_MS: u32 = 4000;
const RETRIES: u32 = 240;
/// How often an unanswered SYN is sent again. With the longest timeout above this takes more than two
/// minutes, as over IP: all paths may be dead for a while. Programs may give up earlier.
const SYN_RETRIES: u32 = 40;

/// The settings of a network namespace whose connections have their subflows created by
/// [`PathManager`](crate::PathManager) alone. They apply to sockets made later.
///
/// Sources: Linux documentation, networking/mptcp-sysctl and networking/ip-sysctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    close_timeout: Duration,
    buffer_limit: u32,
    congestion: Option<String>,
}

/// Why the settings of a namespace could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The kernel cannot do it.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The congestion control does not exist, or is reserved for other namespaces.
    #[error(
        "the congestion control {name} cannot be the default of this network namespace: {source}; \
         the kernel has {available}, and outside of the first namespace only those in \
         `sysctl net.ipv4.tcp_allowed_congestion_control` can be the default"
    )]
    Congestion {
        /// Its name.
        name: String,
        /// The names of those that are there.
        available: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refused a value.
    #[error("cannot set {name} to {value}: {source}; it needs root, and /proc/sys writable")]
    Refused {
        /// The file of the setting.
        name: String,
        /// The value.
        value: String,
        /// The system's error.
        source: io::Error,
    },
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            close_timeout: Duration::from_secs(15 * 60),
            buffer_limit: BUFFER_LIMIT,
            congestion: None,
        }
    }
}

impl Settings {
    /// How long a connection without any subflow waits for a new one before it ends; rounded to
    /// seconds. Default: 15 minutes, after which TCP gives up as well (`tcp_retries2`).
    #[must_use]
    pub fn with_close_timeout(mut self, timeout: Duration) -> Self {
        self.close_timeout = timeout;
        self
    }

    /// Up to how many bytes the send buffer and the receive buffer of a connection grow, which bounds
    /// what is in flight over all its subflows together (`tcp_wmem`, `tcp_rmem`). Default: 64 MiB,
    /// enough for 2.5 Gbit/s at a round-trip time of 200 ms.
    #[must_use]
    pub fn with_buffer_limit(mut self, bytes: u32) -> Self {
        self.buffer_limit = bytes;
        self
    }

    /// The default congestion control of each subflow, as
    /// [`congestion_controls`] names it. Default: that of the system. Where the system reserves one
    /// for the first namespace,
    /// [`SocketOptions::with_congestion`](crate::SocketOptions::with_congestion) works with
    /// `CAP_NET_ADMIN`.
    #[must_use]
    pub fn with_congestion(mut self, name: &str) -> Self {
        self.congestion = Some(name.to_owned());
        self
    }

    /// Applies the settings to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`SettingsError`]; some settings may have been made.
    pub fn apply(&self) -> Result<(), SettingsError> {
        let mptcp = Path::new(MPTCP);
        if mptcp.exists() {
            write(mptcp, "enabled", "1")?;
        }
        check()?;
        // Linux 6.15 calls it by name.
        match mptcp.join("path_manager").exists() {
            true => write(mptcp, "path_manager", "userspace")?,
            false => write(mptcp, "pm_type", "1")?,
        }
        write(mptcp, "scheduler", "default")?;
        // Against middleboxes that change the payload: packets between the ends are sealed instead.
        write(mptcp, "checksum_enabled", "0")?;
        // A subflow carries no new data after the fewest intervals of MPTCP's retransmission timer
        // without progress: the others have room, and it is used again when an acknowledgement
        // arrives.
        write(mptcp, "stale_loss_cnt", "1")?;
        let timeout = self.close_timeout.as_secs().max(1).to_string();
        write(mptcp, "close_timeout", &timeout)?;
        // All subflows go to the address and port of the first one.
        write(mptcp, "allow_join_initial_addr_port", "1")?;
        // No fallback to TCP, neither for a connection whose SYN is lost nor for all later ones:
        // both ends have MPTCP, and a lost SYN means a lost path. Older kernels fall back after the
        // third.
        if exists(mptcp, "syn_retrans_before_tcp_fallback") {
            write(mptcp, "syn_retrans_before_tcp_fallback", "255")?;
        }
        if exists(mptcp, "blackhole_timeout") {
            write(mptcp, "blackhole_timeout", "0")?;
        }

        let tcp = Path::new(TCP);
        // The path of a subflow can change without a change of its addresses: what was measured
        // for an earlier connection between them says nothing.
        write(tcp, "tcp_no_metrics_save", "1")?;
        // They take 12 bytes of each segment, and of an acknowledgement beside MPTCP's option all room
        // but for one range of SACK. The round-trip time is measured without them; old segments with
        // a sequence number that is in use again (RFC 7323, 5) do not come out of a seal, which opens
        // once and not for long.
        write(tcp, "tcp_timestamps", "0")?;
        // Linux 6.15.
        if exists(tcp, "tcp_rto_max_ms") {
            write(tcp, "tcp_rto_max_ms", &RTO_MAX_MS.to_string())?;
            write(tcp, "tcp_retries2", &RETRIES.to_string())?;
            write(tcp, "tcp_syn_retries", &SYN_RETRIES.to_string())?;
        }
        for name in ["tcp_rmem", "tcp_wmem"] {
            set_limit(tcp, name, self.buffer_limit)?;
        }
        if let Some(name) = &self.congestion {
            set_congestion(tcp, name)?;
        }
        Ok(())
    }
}

fn exists(directory: &Path, name: &str) -> bool {
    directory.join(name).exists()
}

/// Sets the largest of the three sizes (minimum, at first, largest) of a buffer, and makes the others
/// no larger.
fn set_limit(tcp: &Path, name: &str, limit: u32) -> Result<(), SettingsError> {
    let path = tcp.join(name);
    let refused = |source| SettingsError::Refused {
        name: path.display().to_string(),
        value: limit.to_string(),
        source,
    };
    let sizes = std::fs::read_to_string(&path).map_err(refused)?;
    let sizes: Vec<_> = sizes.split_whitespace().collect();
    let [minimum, first, _largest] = sizes[..] else {
        return Err(refused(io::Error::from(io::ErrorKind::InvalidData)));
    };
    let bounded = |size: &str| size.parse().unwrap_or(limit).min(limit);
    let (minimum, first) = (bounded(minimum), bounded(first));
    write(tcp, name, &format!("{minimum} {first} {limit}"))
}

fn set_congestion(tcp: &Path, name: &str) -> Result<(), SettingsError> {
    write(tcp, "tcp_congestion_control", name).map_err(|error| match error {
        SettingsError::Refused { source, .. } => SettingsError::Congestion {
            name: name.to_owned(),
            available: congestion_controls().unwrap_or_default().join(", "),
            source,
        },
        other => other,
    })
}

fn write(directory: &Path, name: &str, value: &str) -> Result<(), SettingsError> {
    let path = directory.join(name);
    std::fs::write(&path, value).map_err(|source| SettingsError::Refused {
        name: path.display().to_string(),
        value: value.to_owned(),
        source,
    })
}

/// The congestion controls that the kernel has loaded, as `tcp_congestion_control` names them.
///
/// # Errors
/// When `/proc/sys` does not show them.
pub fn congestion_controls() -> io::Result<Vec<String>> {
    let names = std::fs::read_to_string(Path::new(TCP).join("tcp_available_congestion_control"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn read(name: &str) -> String {
        let text = std::fs::read_to_string(Path::new(MPTCP).join(name)).unwrap();
        text.trim().to_owned()
    }

    #[test]
    fn settings_apply_to_the_namespace_of_the_thread_only() {
        let Some(namespace) = testing::namespace() else {
            return;
        };
        let before = read("close_timeout");
        namespace
            .run(|| {
                std::fs::write("/proc/sys/net/mptcp/enabled", "0").unwrap();
                let timeout = Duration::from_secs(123);
                let settings = Settings::default()
                    .with_close_timeout(timeout)
                    .with_buffer_limit(8 << 20);
                settings.with_congestion("reno").apply().unwrap();
                assert_eq!(read("close_timeout"), "123");
                assert_eq!(read("enabled"), "1");
                assert_eq!(read("pm_type"), "1");
                for name in ["tcp_rmem", "tcp_wmem"] {
                    let sizes = std::fs::read_to_string(Path::new(TCP).join(name)).unwrap();
                    assert_eq!(sizes.split_whitespace().nth(2), Some("8388608"));
                }
                let timestamps = std::fs::read_to_string(Path::new(TCP).join("tcp_timestamps"));
                assert_eq!(timestamps.unwrap().trim(), "0");
                if let Ok(longest) = std::fs::read_to_string(Path::new(TCP).join("tcp_rto_max_ms"))
                {
                    assert_eq!(longest.trim(), RTO_MAX_MS.to_string());
                    let retries = std::fs::read_to_string(Path::new(TCP).join("tcp_syn_retries"));
                    assert_eq!(retries.unwrap().trim(), SYN_RETRIES.to_string());
                }
            })
            .unwrap();
        assert_eq!(read("close_timeout"), before);
    }

    #[test]
    fn an_unknown_congestion_control_is_named_with_those_that_exist() {
        let Some(namespace) = testing::namespace() else {
            return;
        };
        let settings = Settings::default().with_congestion("hawser");
        let error = namespace.run(|| settings.apply()).unwrap().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("hawser"), "{text}");
        let known = congestion_controls().unwrap();
        assert!(text.contains(&known.join(", ")), "{text}");
    }
}
