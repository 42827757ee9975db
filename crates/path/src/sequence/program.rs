//! A sequence as steps, so that matching takes time that grows with the path and the sequence only.

use super::hop::{Crossing, Hop};
use super::parse::Pattern;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Crosses one AS, then the next step.
    Cross(Hop),
    /// Goes on at either step.
    Fork(usize, usize),
}

impl Program {
    pub fn of(pattern: &Pattern) -> Self {
        let mut program = Self(Vec::new());
        program.append(pattern);
        program
    }

    fn append(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Hop(hop) => self.0.push(Step::Cross(*hop)),
            Pattern::All(patterns) => patterns.iter().for_each(|pattern| self.append(pattern)),
            Pattern::Any(patterns) => {
                let mut to_end = Vec::new();
                for (index, pattern) in patterns.iter().enumerate() {
                    if index + 1 == patterns.len() {
                        self.append(pattern);
                        break;
                    }
                    let fork = self.reserve();
                    self.append(pattern);
                    to_end.push(self.reserve());
                    self.0[fork] = Step::Fork(fork + 1, self.0.len());
                }
                let end = self.0.len();
                for at in to_end {
                    self.0[at] = Step::Fork(end, end);
                }
            }
            Pattern::Repeat {
                inner,
                optional,
                again,
            } => {
                let skip = optional.then(|| self.reserve());
                let begin = self.0.len();
                self.append(inner);
                if *again {
                    self.0.push(Step::Fork(begin, self.0.len() + 1));
                }
                if let Some(skip) = skip {
                    self.0[skip] = Step::Fork(begin, self.0.len());
                }
            }
        }
    }

    /// Makes room for a fork whose ends are not known yet.
    fn reserve(&mut self) -> usize {
        self.0.push(Step::Fork(0, 0));
        self.0.len() - 1
    }

    /// Whether the steps lead over exactly these ASes.
    pub fn accepts(&self, path: &[Crossing]) -> bool {
        let mut places = self.reach([0]);
        for crossing in path {
            let crossed = self.0.iter().enumerate().filter_map(|(at, step)| {
                matches!(step, Step::Cross(hop) if places[at] && hop.matches(crossing))
                    .then_some(at + 1)
            });
            places = self.reach(crossed);
        }
        // One past the last step is the end.
        places[self.0.len()]
    }

    /// The steps that can be at hand when those of `from` are: all that forks lead to.
    fn reach(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut places = vec![false; self.0.len() + 1];
        let mut left: Vec<usize> = from.into_iter().collect();
        while let Some(at) = left.pop() {
            if std::mem::replace(&mut places[at], true) {
                continue;
            }
            if let Some(Step::Fork(one, other)) = self.0.get(at) {
                left.extend([*one, *other]);
            }
        }
        places
    }
}
