//! Files that are not selected: what of them is on disk, and where.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::watch::Watch;

/// Bytes of a range.
const SMALL: u64 = 1000;

/// A download of files of these lengths, with what was written so far.
struct World {
    dir: TempDir,
    lengths: Vec<u64>,
    content: Vec<u8>,
    pieces: Pieces,
    /// Which ranges were written.
    written: Vec<bool>,
    /// The files that were never selected, and got no bytes that the part file has no place for.
    untouched: Vec<bool>,
    resumed: Option<Resumed>,
}

impl World {
    fn new(lengths: &[u64]) -> Self {
        let total = lengths.iter().sum::<u64>() as usize;
        let content: Vec<u8> = (0..total).map(|at| (at % 251) as u8 + 1).collect();
        let pieces = Pieces::of(&content, SMALL);
        Self {
            dir: tempfile::tempdir().unwrap(),
            lengths: lengths.to_vec(),
            written: vec![false; pieces.count() as usize],
            untouched: vec![true; lengths.len()],
            content,
            pieces,
            resumed: None,
        }
    }

    fn path(&self, entry: usize) -> PathBuf {
        self.dir.path().join(format!("set/{entry}"))
    }

    fn parts(&self) -> PathBuf {
        self.dir.path().join(".parts")
    }

    fn target(&self, is_selected: impl Fn(usize) -> bool) -> Target {
        let files = self.lengths.iter().enumerate();
        let files = files.map(|(entry, length)| (format!("set/{entry}").into(), *length, false));
        Target {
            root: self.dir.path().to_owned(),
            layout: Layout::new(files),
            mark: vec![1; 20],
            skipped: (0..self.lengths.len())
                .filter(|it| !is_selected(*it))
                .collect(),
            parts: ".parts".into(),
            options: FileOptions::default(),
            trusted: None,
        }
    }

    fn open(&self, is_selected: impl Fn(usize) -> bool) -> Result<Resumed, StoreError> {
        let mut checked = vec![0; self.written.len()];
        let resumed = self.target(is_selected).resume(&self.pieces, |index, _| {
            checked[index as usize] += 1;
            true
        });
        let resumed = resumed.map(Option::unwrap);
        assert!(checked.iter().all(|times| *times <= 1), "{checked:?}");
        resumed
    }

    /// Starts again with this selection; what was written must be found.
    fn restart(&mut self, is_selected: impl Fn(usize) -> bool) {
        self.resumed = None;
        let resumed = self.open(&is_selected).unwrap();
        let written = (0..self.pieces.count()).filter(|index| self.written[*index as usize]);
        assert_eq!(resumed.verified, written.collect::<Vec<_>>());
        self.resumed = Some(resumed);
        self.touch(is_selected);
    }

    fn touch(&mut self, is_selected: impl Fn(usize) -> bool) {
        let untouched = self.untouched.iter_mut().enumerate();
        untouched.for_each(|(entry, it)| *it &= !is_selected(entry));
    }

    fn files(&self) -> &Files {
        &self.resumed.as_ref().unwrap().files
    }

    fn select(&mut self, is_selected: impl Fn(usize) -> bool) {
        self.files().select(&is_selected).unwrap();
        self.touch(is_selected);
    }

    fn write(&mut self, index: u32) {
        let range = self.pieces.range(index);
        for run in self.files().located(range.clone()).collect::<Vec<_>>() {
            self.untouched[run.entry] &= run.offset.is_some();
        }
        let bytes = &self.content[range.start as usize..range.end as usize];
        self.files().write_run(range.start, &[bytes]).unwrap();
        self.written[index as usize] = true;
    }

    fn check(&self) {
        for index in (0..self.pieces.count()).filter(|it| self.written[*it as usize]) {
            let range = self.pieces.range(index);
            let mut read = vec![0; (range.end - range.start) as usize];
            self.files().read_at(range.start, &mut read).unwrap();
            assert!(read == self.content[range.start as usize..range.end as usize]);
        }
        for entry in (0..self.lengths.len()).filter(|entry| self.untouched[*entry]) {
            assert!(!self.path(entry).exists(), "{entry}");
        }
        // A range between each two files at most.
        let parts = fs::metadata(self.parts()).map_or(0, |parts| parts.len());
        assert!(parts <= SMALL * (self.lengths.len() as u64 - 1), "{parts}");
    }
}

#[derive(Debug, Clone)]
enum Op {
    Select(u32),
    Restart(u32),
    Write(u32),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => any::<u32>().prop_map(Op::Select),
        1 => any::<u32>().prop_map(Op::Restart),
        4 => any::<u32>().prop_map(Op::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_found_whatever_is_selected(
        lengths in proptest::collection::vec(prop_oneof![0u64..300, 0u64..5000], 1..7),
        first: u32,
        ops in proptest::collection::vec(any_op(), 1..30),
    ) {
        prop_assume!(lengths.iter().sum::<u64>() > 0);
        let mut world = World::new(&lengths);
        world.restart(|entry| first >> entry & 1 == 1);
        for op in ops {
            match op {
                Op::Select(mask) => world.select(|entry| mask >> entry & 1 == 1),
                Op::Restart(mask) => world.restart(|entry| mask >> entry & 1 == 1),
                Op::Write(index) => world.write(index % world.pieces.count()),
            }
            world.check();
        }
        // Everything is selected at last: nothing is left of the part file.
        world.select(|_| true);
        (0..world.pieces.count()).for_each(|index| world.write(index));
        world.check();
        world.files().complete().unwrap();
        world.resumed = None;
        prop_assert!(!world.parts().exists());
        let files = (0..lengths.len()).flat_map(|entry| fs::read(world.path(entry)).unwrap());
        prop_assert!(files.eq(world.content.iter().copied()));
    }
}

/// Three files; the second and the fifth range cross into the second one.
const THREE: [u64; 3] = [1500, 3000, 2500];

#[test]
fn a_part_file_is_not_left_without_need() {
    let mut world = World::new(&THREE);
    world.restart(|entry| entry == 0);
    assert!(world.parts().exists());
    world.write(0);
    world.resumed = None;
    assert!(!world.parts().exists());
    world.restart(|entry| entry == 0);
    world.write(1);
    world.resumed = None;
    assert!(world.parts().exists());
    assert_eq!(fs::metadata(world.path(0)).unwrap().len(), 1500);
    assert!(!world.path(1).exists());
}

#[test]
fn the_file_of_the_lock_is_not_left_when_it_is_no_longer_selected() {
    let mut world = World::new(&THREE);
    world.restart(|entry| entry == 0);
    world.select(|entry| entry == 1);
    world.write(1);
    world.resumed = None;
    assert!(!world.path(0).exists());
    assert!(world.path(1).exists());
    world.restart(|entry| entry == 0);
    assert!(world.path(0).exists());
}

#[test]
fn what_is_in_the_way_of_a_file_selected_later_is_named_and_stays() {
    let mut world = World::new(&THREE);
    world.restart(|entry| entry == 0);
    world.write(1);
    let path = world.path(1);
    world.untouched[1] = false;
    fs::create_dir(&path).unwrap();
    let error = world.files().select(|_| true).unwrap_err();
    assert!(
        matches!(&error, StoreError::NotAFile(of) if *of == path),
        "{error}"
    );
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    let error = world.files().select(|_| true).unwrap_err();
    assert!(
        matches!(&error, StoreError::Foreign(of) if *of == path),
        "{error}"
    );
    fs::write(&path, vec![1; 3001]).unwrap();
    let error = world.files().select(|_| true).unwrap_err();
    assert!(
        matches!(&error, StoreError::TooLong { path: of, .. } if *of == path),
        "{error}"
    );
    // Nothing was changed, not even for the third file.
    world.check();
    assert!(!world.path(2).exists());
    fs::remove_file(&path).unwrap();
    world.select(|_| true);
    world.check();
    assert_eq!(fs::metadata(&path).unwrap().len(), 3000);
}

#[test]
fn files_of_others_in_place_of_unselected_ones_are_left_alone() {
    let mut world = World::new(&THREE);
    world.restart(|entry| entry == 0);
    world.write(0);
    world.write(1);
    world.resumed = None;
    fs::write(world.path(1), vec![9; 3000]).unwrap();
    world.untouched[1] = false;
    // What is in the part file is found all the same.
    world.restart(|entry| entry == 0);
    world.write(1);
    world.check();
    world.files().complete().unwrap();
    assert!(fs::read(world.path(1)).unwrap() == vec![9; 3000]);
    world.resumed = None;
    let error = world.open(|entry| entry < 2).unwrap_err();
    assert!(matches!(error, StoreError::Foreign(_)), "{error}");
}

#[test]
fn files_of_the_download_serve_it_also_when_they_are_not_selected() {
    let mut world = World::new(&THREE);
    world.restart(|_| true);
    (0..world.pieces.count()).for_each(|index| world.write(index));
    world.files().complete().unwrap();
    world.restart(|entry| entry == 1);
    assert!(!world.files().is_in_parts(0));
    world.check();
    // One that lacks ranges is still recognized later.
    let mut world = World::new(&THREE);
    world.restart(|_| true);
    world.write(0);
    world.restart(|entry| entry == 2);
    world.files().complete().unwrap();
    world.restart(|_| true);
}

#[test]
fn ranges_of_padding_alone_need_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let content = [vec![7; 1000], vec![0; 2000], vec![7; 500]].concat();
    let files = [("a", 1000, false), (".pad", 2000, true), ("b", 500, false)];
    let target = Target {
        root: dir.path().to_owned(),
        layout: Layout::new(files.map(|(path, length, padding)| (path.into(), length, padding))),
        mark: vec![1; 20],
        skipped: BTreeSet::from([2]),
        parts: ".parts".into(),
        options: FileOptions::default(),
        trusted: None,
    };
    let resumed = target.resume(&Pieces::of(&content, SMALL), |_, _| true);
    let resumed = resumed.unwrap().unwrap();
    assert_eq!(resumed.verified, [1, 2]);
    assert_eq!(fs::metadata(dir.path().join("a")).unwrap().len(), 0);
    drop(resumed);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn downloads_with_different_selections_do_not_meet() {
    for (one, other) in [
        (0, 2),
        (2, 0),
        (0, 3),
        (3, 0),
        (1, 2),
        (2, 1),
        (3, 2),
        (2, 3),
        (3, 3),
    ] {
        let selects = |which: usize| move |entry: usize| which == 3 || entry == which;
        let mut world = World::new(&THREE);
        world.restart(selects(one));
        let error = world.open(selects(other)).unwrap_err();
        assert!(
            matches!(error, StoreError::InUse(_)),
            "{one} {other}: {error}"
        );
        world.select(|_| true);
        let error = world.open(selects(other)).unwrap_err();
        assert!(
            matches!(error, StoreError::InUse(_)),
            "{one} {other}: {error}"
        );
    }
}

#[test]
fn a_part_file_that_changes_is_noticed_and_other_ranges_are_not_reported() {
    let mut world = World::new(&THREE);
    world.restart(|entry| entry == 0);
    world.write(0);
    world.write(1);
    let stamps = world.files().complete().unwrap();
    let files = Arc::clone(&world.resumed.as_ref().unwrap().files);
    let watch = Watch::new(files, Arc::new(world.pieces.clone()), stamps, |range| {
        range < 2
    });
    watch.scan();
    assert_eq!(watch.take_news(), None);
    fs::write(world.parts(), vec![0; 1000]).unwrap();
    // A file that changes is looked at again first.
    for _ in 0..2 {
        watch.scan();
    }
    let news = watch.take_news().unwrap();
    assert_eq!(news.withdrawn, [1]);
    assert!(!watch.is_offered(1) && watch.is_offered(0));
}
