//! Answers to those who ask where connections go.

use crate::session::Connect;

/// What is done with the answer.
type Give = Box<dyn FnOnce(Result<Connect, String>) + Send + Sync>;

/// Takes the answer to one request. Dropped without one, it says that the session has ended.
///
/// The answer is passed on by the task that gives it, not by another one: what a session reports
/// afterwards, such as its end, does not overtake it.
pub(crate) struct Answer(Option<Give>);

impl Answer {
    /// `give` gets the answer; it must not block.
    pub(crate) fn new(give: impl FnOnce(Result<Connect, String>) + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(give)))
    }

    /// Answers.
    pub(crate) fn give(mut self, found: Result<Connect, String>) {
        if let Some(give) = self.0.take() {
            give(found);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(give) = self.0.take() {
            give(Err("the session has ended".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_answer_is_there_before_what_follows_it_and_never_missing() {
        let (sender, received) = mpsc::channel();
        let answer = || {
            let sender = sender.clone();
            Answer::new(move |found| sender.send(found.err().unwrap()).unwrap())
        };
        answer().give(Err("refused".to_owned()));
        sender.send("the end".to_owned()).unwrap();
        drop(answer());
        let all: Vec<String> = received.try_iter().collect();
        assert_eq!(all, ["refused", "the end", "the session has ended"]);
    }
}
