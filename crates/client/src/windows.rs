//! Which bytes of a torrent are being read while they are fetched.

use hawser_torrent::Window;
use tokio::sync::watch;

/// The bytes that readers of a torrent need next, without I/O. There is one for each connection to the API at
/// most. The engine fetches one window first: that of the reader that moved last, because one that waits for
/// bytes that are there does not move.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Each reader with its window, the one that moved last at the end.
    readers: Vec<(u64, Window)>,
    next: u64,
}

impl Windows {
    /// Adds a reader of these bytes, and returns its number.
    fn join(&mut self, window: Window) -> u64 {
        let number = self.next;
        self.next += 1;
        self.readers.push((number, window));
        number
    }

    /// A reader needs other bytes now.
    fn advance(&mut self, reader: u64, window: Window) {
        if let Some(at) = self
            .readers
            .iter()
            .position(|(number, _)| *number == reader)
        {
            self.readers.remove(at);
            self.readers.push((reader, window));
        }
    }

    fn leave(&mut self, reader: u64) {
        self.readers.retain(|(number, _)| *number != reader);
    }

    /// The bytes that are fetched first; `None` if nothing is being read.
    pub fn latest(&self) -> Option<Window> {
        self.readers.last().map(|(_, window)| *window)
    }
}

/// The window of one reader. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenWindow {
    windows: watch::Sender<Windows>,
    reader: u64,
}

impl OpenWindow {
    /// Has these bytes fetched first.
    pub fn open(windows: watch::Sender<Windows>, window: Window) -> Self {
        let mut reader = 0;
        windows.send_modify(|windows| reader = windows.join(window));
        Self { windows, reader }
    }

    /// Has other bytes fetched first instead.
    pub fn advance(&self, window: Window) {
        let reader = self.reader;
        self.windows
            .send_modify(|windows| windows.advance(reader, window));
    }
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        let reader = self.reader;
        self.windows.send_modify(|windows| windows.leave(reader));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(offset: u64) -> Window {
        Window {
            file: 0,
            offset,
            length: 1,
        }
    }

    proptest! {
        /// The window is that of the reader which moved last, of those that are there.
        #[test]
        fn the_reader_that_moved_last_counts(steps in proptest::collection::vec((0u8..3, 0usize..6), 0..80)) {
            let (windows, seen) = watch::channel(Windows::default());
            let mut readers: Vec<(OpenWindow, u64)> = Vec::new();
            for (offset, (step, which)) in (0u64..).zip(steps) {
                match step {
                    0 => {
                        let open = OpenWindow::open(windows.clone(), window(offset));
                        readers.push((open, offset));
                    }
                    _ if readers.is_empty() => {}
                    1 => {
                        let (open, _) = readers.remove(which % readers.len());
                        open.advance(window(offset));
                        readers.push((open, offset));
                    }
                    _ => drop(readers.remove(which % readers.len())),
                }
                let expected = readers.last().map(|(_, offset)| window(*offset));
                prop_assert_eq!(seen.borrow().latest(), expected);
            }
        }
    }
}
