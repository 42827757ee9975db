//! Memory of running processes.

/// The most memory that a process has used so far (VmHWM of proc_pid_status(5)), in bytes; `None`
/// if it has ended.
pub fn peak(pid: u32) -> Option<u64> {
    high_water(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// The memory that a process uses now, in bytes: of pages that several share, its part (Pss of
/// proc_pid_smaps(5)); `None` if it has ended.
pub(crate) fn proportional(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    value(&rollup, "Pss:")
}

fn high_water(status: &str) -> Option<u64> {
    value(status, "VmHWM:")
}

/// The value of a line with this name.
fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t   2048 kB\n"), Some(2 << 20));
        for wrong in ["", "VmHWM:", "VmHWM: 5", "VmHWM: x kB"] {
            assert_eq!(high_water(wrong), None, "{wrong:?}");
        }
        assert!(peak(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert!(proportional(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert_eq!(proportional(u32::MAX), None);
    }
}
