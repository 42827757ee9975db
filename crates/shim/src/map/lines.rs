//! Lines of a map, by their numbers.

/// What is wrong in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub reason: String,
}

/// Which line a byte of a text is in.
pub(super) struct LineNumbers {
    /// Where the second and the following lines begin.
    starts: Vec<usize>,
}

impl LineNumbers {
    pub(super) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            starts: ends.map(|(at, _)| at + 1).collect(),
        }
    }

    /// The number of the line, from 1.
    pub(super) fn number(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte) + 1
    }
}
