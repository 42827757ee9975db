//! Folders that are written to.

use crate::code::Code;
use crate::facts::{Facts, Folder};
use crate::finding::Finding;

/// With less free space than this, in bytes, nothing useful can be written.
const FULL: u64 = 1 << 20;
/// With less than this, in bytes, the next transfer or log fills the disk.
const NEARLY_FULL: u64 = 64 << 20;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    for folder in &facts.folders {
        check_folder(folder, findings);
    }
}

fn check_folder(folder: &Folder, findings: &mut Vec<Finding>) {
    let (path, what) = (folder.path.display(), folder.what);
    let device = format!("`df {path}` shows the file system: remove what is not needed");
    if folder.free < FULL {
        findings.push(Finding::error(
            Code::DiskFull,
            format!("the disk of {path} ({what}) is full: {}", size(folder.free)),
            device.clone(),
        ));
    } else if folder.free < NEARLY_FULL {
        findings.push(Finding::warning(
            Code::DiskFull,
            format!(
                "the disk of {path} ({what}) is nearly full: {}",
                size(folder.free)
            ),
            device.clone(),
        ));
    }
    if folder.files == Some(0) {
        findings.push(Finding::error(
            Code::NoInodes,
            format!("the file system of {path} ({what}) can take no more files"),
            "`df -i` shows it: remove files that are not needed",
        ));
    }
    if !folder.needed {
        return;
    }
    if folder.read_only {
        findings.push(Finding::error(
            Code::FolderReadOnly,
            format!("{path} ({what}) is on a read-only file system"),
            "`dmesg` says whether the kernel made it so after an error of the disk; mount it \
             writable, or name another folder",
        ));
    } else if !folder.writable {
        findings.push(Finding::error(
            Code::FolderNotWritable,
            format!("this user may not write to {path} ({what})"),
            format!("`chown` it to the user of the service, or name another folder; `ls -ld {path}` shows whose it is"),
        ));
    }
}

fn size(free: u64) -> String {
    match free >> 10 {
        0 => "0 KiB are free".to_owned(),
        kib @ 1..1024 => format!("{kib} KiB are free"),
        kib => format!("{} MiB are free", kib >> 10),
    }
}
