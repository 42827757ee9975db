//! Small numbers for interfaces, so that comparing thousands of paths is cheap.

use std::collections::HashMap;

use crate::Interface;

/// The interfaces of all offered paths, each with a number, which is reused after the last path
/// over the interface is withdrawn. The numbers say only which interfaces are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    numbers: HashMap<Interface, u32>,
    paths: Vec<u32>,
    free: Vec<u32>,
}

impl Links {
    /// Numbers the interfaces of a path, until [`Links::release`].
    pub fn number(&mut self, interfaces: &[Interface]) -> Vec<u32> {
        let number = |interface: &Interface| {
            let number = *self.numbers.entry(*interface).or_insert_with(|| {
                self.free.pop().unwrap_or_else(|| {
                    self.paths.push(0);
                    (self.paths.len() - 1) as u32
                })
            });
            self.paths[number as usize] += 1;
            number
        };
        interfaces.iter().map(number).collect()
    }

    /// Releases the numbers of the interfaces of a path.
    pub fn release(&mut self, interfaces: &[Interface]) {
        for interface in interfaces {
            let Some(&number) = self.numbers.get(interface) else {
                continue;
            };
            self.paths[number as usize] -= 1;
            if self.paths[number as usize] == 0 {
                self.numbers.remove(interface);
                self.free.push(number);
            }
        }
    }

    /// All numbers are less than this.
    pub fn end(&self) -> usize {
        self.paths.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(text: &str) -> Vec<Interface> {
        text.split(' ').map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn numbers_are_used_again_when_no_path_needs_them() {
        let mut links = Links::default();
        let (one, two) = (
            interfaces("1-ff00:0:1#1 1-ff00:0:2#1"),
            interfaces("1-ff00:0:2#1 1-ff00:0:3#1"),
        );
        let first = links.number(&one);
        let second = links.number(&two);
        assert_eq!(first[1], second[0]);
        assert_eq!(links.end(), 3);
        links.release(&one);
        assert_eq!(links.number(&two), second);
        assert_eq!(links.number(&interfaces("1-ff00:0:9#1")), [first[0]]);
        assert_eq!(links.end(), 3);
    }
}
