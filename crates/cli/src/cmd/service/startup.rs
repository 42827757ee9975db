//! Memory that only start-up needs.

use std::ffi::c_void;

use rustix::mm::{Advice, madvise};

/// Returns the pages of program code that this process has touched so far to the system.
///
/// A lab runs two services per AS of one large program. The code that reads the command line and
/// the files of an AS would stay mapped in each of them; pages that are needed again are mapped
/// again at their next use. If the mappings cannot be read, nothing is returned.
pub fn forget() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for (start, length) in maps.lines().filter_map(code) {
        // SAFETY: the pages belong to a file and cannot be written, so their content equals the
        // file's, and is read from it again when touched.
        let given = unsafe { madvise(start as *mut c_void, length, Advice::LinuxDontNeed) };
        if let Err(error) = given {
            tracing::debug!(%error, "code pages stay mapped");
        }
    }
}

/// Start and length of a mapping of proc_pid_maps(5) that is code of a file.
fn code(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (permissions, file) = (fields.next()?, fields.nth(3)?);
    if permissions != "r-xp" || !file.starts_with('/') {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_returned() {
        let line = "55d0c0a00000-55d0c0b00000 r-xp 00001000 fd:00 123  /usr/bin/hawser";
        assert_eq!(code(line), Some((0x55d0_c0a0_0000, 0x10_0000)));
        for other in [
            "55d0c0a00000-55d0c0b00000 rw-p 00001000 fd:00 123  /usr/bin/hawser",
            "55d0c0a00000-55d0c0b00000 r--p 00001000 fd:00 123  /usr/bin/hawser",
            "7ffc1c5f5000-7ffc1c5f7000 r-xp 00000000 00:00 0  [vdso]",
            "7ffc1c5f5000-7ffc1c5f7000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code(other), None, "{other}");
        }
    }

    #[test]
    fn the_program_continues_after_forgetting() {
        forget();
        assert_eq!(code("1000-3000 r-xp 0 fd:00 1 /x"), Some((0x1000, 0x2000)));
    }
}
