use std::fs::File;

use super::testing::Elf;
use super::*;

fn read_bytes(bytes: &[u8]) -> Result<Headers, ElfError> {
    Headers::read(bytes)
}

#[test]
fn what_a_program_needs_is_read() {
    let elf = Elf {
        interpreter: Some("/lib64/ld.so"),
        needed: &["liba.so.1", "libb.so"],
        rpath: Some("/opt/old"),
        runpath: Some("$ORIGIN/../lib:/opt/lib"),
        machine: Some(183),
    };
    let headers = read_bytes(&elf.bytes()).unwrap();
    let expected = Headers {
        machine: Machine::Aarch64,
        interpreter: Some("/lib64/ld.so".to_owned()),
        needed: vec!["liba.so.1".to_owned(), "libb.so".to_owned()],
        rpath: Some("/opt/old".to_owned()),
        runpath: Some("$ORIGIN/../lib:/opt/lib".to_owned()),
    };
    assert_eq!(headers, expected);
    let none = read_bytes(&Elf::default().bytes()).unwrap();
    assert_eq!((none.interpreter, none.needed), (None, vec![]));
}

#[test]
fn this_test_is_a_program() {
    let file = File::open("/proc/self/exe").unwrap();
    let headers = Headers::read(&file).unwrap();
    let is_dynamic = headers.interpreter.is_some();
    assert_eq!(is_dynamic, !headers.needed.is_empty(), "{headers:?}");
}

#[test]
fn other_files_are_refused() {
    assert_eq!(read_bytes(b"#!/bin/sh\n"), Err(ElfError::NotElf));
    assert_eq!(read_bytes(b""), Err(ElfError::NotElf));
    let mut bytes = Elf::default().bytes();
    bytes[4] = 1;
    assert_eq!(read_bytes(&bytes), Err(ElfError::Class));
    let other = Elf {
        machine: Some(3),
        ..Elf::default()
    };
    assert_eq!(read_bytes(&other.bytes()), Err(ElfError::Machine(3)));
    // A name of a library with a slash could be any file.
    let path = Elf {
        needed: &["../etc/shadow"],
        ..Elf::default()
    };
    let damaged = Err(ElfError::Damaged("dynamic section"));
    assert_eq!(read_bytes(&path.bytes()), damaged);
    let relative = Elf {
        interpreter: Some("ld.so"),
        ..Elf::default()
    };
    let damaged = Err(ElfError::Damaged("interpreter"));
    assert_eq!(read_bytes(&relative.bytes()), damaged);
}

#[test]
fn any_bytes_are_read_without_panic() {
    let elf = Elf {
        interpreter: Some("/lib64/ld.so"),
        needed: &["liba.so.1", "libb.so"],
        rpath: Some("/opt/old"),
        runpath: Some("/opt/lib"),
        machine: None,
    };
    let valid = [elf.bytes(), Elf::default().bytes()];
    hawser_fuzz::fuzz(&valid, |bytes| {
        if let Ok(headers) = read_bytes(bytes) {
            assert!(headers.needed.iter().all(|name| !name.contains('/')));
            assert!(headers.needed.len() <= MAX_NEEDED);
            let interpreter = headers.interpreter.iter();
            assert!(interpreter.into_iter().all(|path| path.starts_with('/')));
        }
    });
}
