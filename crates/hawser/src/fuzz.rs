//! Random bytes for what reads greetings and answers.

use hawser_fuzz::{fuzz, samples};

use crate::wire::tests::{answers, greetings};
use crate::wire::{Answer, Greeting};

#[test]
fn any_greeting_is_decoded_or_refused() {
    let valid = samples(greetings());
    let valid: Vec<Vec<u8>> = valid.iter().map(|one| one.encode().to_vec()).collect();
    fuzz(&valid, |input| {
        if let Ok(bytes) = input.try_into()
            && let Ok(greeting) = Greeting::decode(bytes)
        {
            assert_eq!(&greeting.encode(), bytes);
        }
    });
}

#[test]
fn any_answer_is_decoded_or_refused() {
    let valid = samples(answers());
    let valid: Vec<Vec<u8>> = valid.iter().map(|one| one.encode().to_vec()).collect();
    fuzz(&valid, |input| {
        if let Ok(bytes) = input.try_into()
            && let Ok(answer) = Answer::decode(bytes)
        {
            assert_eq!(&answer.encode(), bytes);
        }
    });
}
