use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use sha1::Sha1;
use tempfile::TempDir;

use super::*;
use crate::options::FileOptions;
use crate::range::testing::Pieces;
use crate::target::{Resumed, Target};

/// Bytes of a range.
const RANGE: u64 = 1000;

/// A download that is killed and started again.
struct World {
    dir: TempDir,
    lengths: Vec<u64>,
    content: Vec<u8>,
    pieces: Arc<Pieces>,
    skipped: BTreeSet<usize>,
    run: Option<Run>,
}

/// A run of the program.
struct Run {
    resumed: Resumed,
    recorder: Recorder<Pieces>,
    verified: Vec<bool>,
}

impl World {
    fn new(lengths: &[u64]) -> Self {
        let total = lengths.iter().sum::<u64>() as usize;
        // No range is zeros alone.
        let content: Vec<u8> = (0..total).map(|at| (at % 251) as u8 + 1).collect();
        let mut world = Self {
            dir: tempfile::tempdir().unwrap(),
            lengths: lengths.to_vec(),
            pieces: Arc::new(Pieces::of(&content, RANGE)),
            content,
            skipped: BTreeSet::new(),
            run: None,
        };
        world.start();
        world
    }

    fn path(&self, entry: usize) -> PathBuf {
        self.dir.path().join(format!("set/{entry}"))
    }

    fn file(&self) -> VerifiedFile {
        VerifiedFile::new(self.dir.path().join("verified"), vec![1; 20])
    }

    fn layout(&self) -> Layout {
        let files = self.lengths.iter().enumerate();
        Layout::new(files.map(|(entry, length)| (format!("set/{entry}").into(), *length, false)))
    }

    /// Starts as a download does. Asserts that exactly the pieces with the right content are verified then.
    fn start(&mut self) {
        self.run = None;
        let target = Target {
            root: self.dir.path().to_owned(),
            layout: self.layout(),
            mark: vec![1; 20],
            skipped: self.skipped.clone(),
            parts: ".parts".into(),
            options: FileOptions {
                overwrite: true,
                ..FileOptions::default()
            },
            trusted: self.file().read(&self.layout(), &*self.pieces),
        };
        let mut seen = vec![0; self.pieces.count() as usize];
        let resumed = target.resume(&*self.pieces, |index, _| {
            seen[index as usize] += 1;
            true
        });
        let resumed = resumed.unwrap().unwrap();
        assert!(seen.iter().all(|times| *times <= 1), "{seen:?}");
        let mut verified = vec![false; seen.len()];
        for index in &resumed.verified {
            verified[*index as usize] = true;
        }
        for (index, is_verified) in (0..).zip(&verified) {
            assert_eq!(self.is_right(&resumed, index), *is_verified, "{index}");
        }
        let recorder = Recorder::new(
            self.file(),
            Arc::clone(&resumed.files),
            Arc::clone(&self.pieces),
            resumed.stamps.clone(),
            |index| verified[index as usize],
            false,
        );
        self.run = Some(Run {
            resumed,
            recorder,
            verified,
        });
    }

    /// Whether a range on disk has its content.
    fn is_right(&self, resumed: &Resumed, index: u32) -> bool {
        let range = self.pieces.range(index);
        let mut read = vec![0; (range.end - range.start) as usize];
        let is_read = resumed.files.read_at(range.start, &mut read).is_ok();
        is_read && read == self.content[range.start as usize..range.end as usize]
    }

    fn run(&mut self) -> &mut Run {
        self.run.as_mut().unwrap()
    }

    fn write(&mut self, number: u32) {
        let index = number % self.pieces.count();
        let range = self.pieces.range(index);
        let bytes = self.content[range.start as usize..range.end as usize].to_vec();
        let run = self.run();
        // A verified range is never written again.
        if !run.verified[index as usize] {
            let files = &run.resumed.files;
            files.write_run(range.start, &[bytes]).unwrap();
            run.verified[index as usize] = true;
        }
    }

    /// Writes a part of a range: it is not verified.
    fn begin(&mut self, number: u32) {
        let index = number % self.pieces.count();
        let start = self.pieces.range(index).start;
        let byte = self.content[start as usize];
        let run = self.run();
        if !run.verified[index as usize] {
            let files = &run.resumed.files;
            files.write_run(start, &[[byte]]).unwrap();
        }
    }

    fn record(&mut self) {
        let Run {
            recorder, verified, ..
        } = self.run();
        let verified = verified.clone();
        recorder.record(|index| verified[index as usize]).unwrap();
    }

    /// Another program changes a byte of a file, or cuts it, while none runs.
    fn damage(&mut self, number: u32, cuts: bool) {
        self.run = None;
        let entry = number as usize % self.lengths.len();
        let file = File::options().write(true).open(self.path(entry));
        let length = file
            .as_ref()
            .map_or(0, |file| file.metadata().unwrap().len());
        // There is none before the first write.
        if let (Ok(file), 1..) = (file, length) {
            match cuts {
                true => file.set_len(length / 2).unwrap(),
                false => {
                    let at = u64::from(number) % length;
                    file.write_all_at(&[0], at).unwrap();
                }
            }
        }
        self.start();
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write(u32),
    Begin(u32),
    Record,
    /// The program is killed and started again.
    Kill,
    /// It is killed, and started again with other files.
    Select(u32),
    Damage(u32, bool),
    /// The record is damaged while the program does not run.
    Spoil(u32),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u32>().prop_map(Op::Write),
        2 => any::<u32>().prop_map(Op::Begin),
        3 => Just(Op::Record),
        2 => Just(Op::Kill),
        1 => any::<u32>().prop_map(Op::Select),
        2 => (any::<u32>(), any::<bool>()).prop_map(|(at, cuts)| Op::Damage(at, cuts)),
        1 => any::<u32>().prop_map(Op::Spoil),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn after_any_kill_what_is_right_is_verified_and_nothing_else(
        lengths in proptest::collection::vec(prop_oneof![0u64..300, 1u64..5000], 1..6),
        ops in proptest::collection::vec(any_op(), 1..30),
    ) {
        prop_assume!(lengths.iter().sum::<u64>() > 0);
        let mut world = World::new(&lengths);
        for op in ops {
            match op {
                Op::Write(index) => world.write(index),
                Op::Begin(index) => world.begin(index),
                Op::Record => world.record(),
                Op::Kill => world.start(),
                Op::Select(mask) => {
                    let skipped = (0..lengths.len()).filter(|entry| mask >> entry & 1 == 1);
                    world.skipped = skipped.collect();
                    world.start();
                }
                Op::Damage(at, cuts) => world.damage(at, cuts),
                Op::Spoil(at) => {
                    world.run = None;
                    let path = world.dir.path().join("verified");
                    if let Ok(mut bytes) = fs::read(&path) {
                        let at = at as usize % bytes.len();
                        bytes[at] ^= 1;
                        fs::write(&path, bytes).unwrap();
                    }
                    world.start();
                }
            }
        }
        world.start();
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is(
        bits in proptest::collection::vec(any::<bool>(), 1..40),
        stamps in proptest::collection::vec(proptest::option::of(any::<(u64, i64, i64, u64)>()), 0..9),
        flip: prop::sample::Index,
        bit in 0u8..8,
    ) {
        let stamp = |(length, seconds, nanos, inode)| Stamp {
            length,
            modified: (seconds, nanos),
            identity: (0, inode),
        };
        let stamps: Vec<_> = stamps.into_iter().map(|it| it.map(stamp)).collect();
        let (count, entries) = (bits.len() as u32, stamps.len());
        let verified = Verified::new(count, Stamps(stamps), |index| bits[index as usize]);
        let mut bytes = verified.encode::<Sha1>(b"mark", count);
        let read = |bytes: &[u8], mark: &[u8], count, entries| {
            Verified::decode::<Sha1>(bytes, mark, count, entries)
        };
        prop_assert_eq!(read(&bytes, b"mark", count, entries), Some(verified));
        prop_assert_eq!(read(&bytes, b"murk", count, entries), None);
        prop_assert_eq!(read(&bytes, b"mark", count + 8, entries), None);
        prop_assert_eq!(read(&bytes, b"mark", count, entries + 1), None);
        let at = flip.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(read(&bytes, b"mark", count, entries), None);
    }
}

/// A download of two files of several ranges, of which those of the first and two of the second are there.
fn half() -> World {
    let mut world = World::new(&[5000, 7000]);
    (0..7).for_each(|index| world.write(index));
    world
}

fn trusted(world: &mut World) -> (u32, usize) {
    let resumed = &world.run().resumed;
    (resumed.trusted, resumed.verified.len())
}

#[test]
fn what_has_not_changed_is_not_hashed_again() {
    let mut world = half();
    world.record();
    world.start();
    assert_eq!(trusted(&mut world), (7, 7));
    // Killed after further writes to the second file: it is hashed, and nothing is lost.
    world.write(9);
    world.start();
    assert_eq!(trusted(&mut world), (5, 8));
    world.record();
    world.start();
    assert_eq!(trusted(&mut world), (8, 8));
    // Nothing was recorded at all.
    world.file().remove().unwrap();
    world.start();
    assert_eq!(trusted(&mut world), (0, 8));
}

#[test]
fn a_file_that_another_program_has_touched_is_hashed() {
    let mut world = half();
    world.record();
    world.run = None;
    let file = File::options().write(true).open(world.path(0)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    world.start();
    assert_eq!(trusted(&mut world), (2, 7));
    // Another file with the same time and length.
    world.record();
    world.run = None;
    let (old, new) = (world.path(1), world.dir.path().join("new"));
    let modified = fs::metadata(&old).unwrap().modified().unwrap();
    fs::copy(&old, &new).unwrap();
    let copy = File::options().write(true).open(&new).unwrap();
    copy.write_all_at(&[0], 10).unwrap();
    copy.set_modified(modified).unwrap();
    fs::rename(new, old).unwrap();
    world.start();
    assert_eq!(trusted(&mut world), (5, 6));
}

#[test]
fn a_record_that_cannot_be_written_is_an_error_and_is_tried_again() {
    let mut world = half();
    let path = world.dir.path().join("verified");
    fs::create_dir(&path).unwrap();
    let Run {
        recorder, verified, ..
    } = world.run();
    let verified = verified.clone();
    let error = recorder.record(|index| verified[index as usize]);
    assert!(error.unwrap_err().to_string().contains("verified"));
    fs::remove_dir(&path).unwrap();
    world.record();
    world.start();
    assert_eq!(trusted(&mut world), (7, 7));
}

mod fuzz {
    use super::*;

    #[test]
    fn records() {
        let stamps = Stamps(vec![None, None]);
        let valid = Verified::new(9, stamps, |index| index == 3);
        let valid = [valid.encode::<Sha1>(b"mark", 9)];
        hawser_fuzz::fuzz(&valid, |input| {
            let read = Verified::decode::<Sha1>(input, b"mark", 9, 2);
            if let Some(read) = read {
                assert_eq!(read.encode::<Sha1>(b"mark", 9), input);
            }
        });
    }
}
