//! What a process takes, by proc(5).

use std::fs;
use std::time::Duration;

use crate::Failure;

/// Memory in use, in MiB.
pub fn memory(pid: u32) -> Result<u64, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines
        .find(|(key, _)| *key == "VmRSS")
        .ok_or("no such number")?;
    let digits = value.split_whitespace().next().ok_or("no number")?;
    Ok(digits.parse::<u64>()? / 1024)
}

/// How many files it has open.
pub fn open_files(pid: u32) -> Result<usize, Failure> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Time that it has had of processors, in user and system mode (in ticks of 10 ms).
pub fn processor_time(pid: u32) -> Result<Duration, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .ok_or("no field")?
            .parse::<u64>()
            .map_err(Failure::from)
    };
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}
