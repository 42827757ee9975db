//! Things that are chosen by their names on the command line.

use std::fmt::Display;

/// A thing that is chosen by its name, which [`Display`] writes.
pub trait Choice: Copy + Display + 'static {
    /// What it is called: `carrier`.
    const WHAT: &'static str;
    /// All of them.
    const ALL: &'static [Self];

    /// Those chosen, or all if none is.
    fn chosen(chosen: &[Self]) -> Vec<Self> {
        match chosen {
            [] => Self::ALL.to_vec(),
            chosen => chosen.to_vec(),
        }
    }
}

/// Reads the name of a thing.
///
/// # Errors
/// A text that names all of them if there is none of this name.
pub fn choice<T: Choice>(text: &str) -> Result<T, String> {
    let found = T::ALL.iter().find(|one| one.to_string() == text);
    found.copied().ok_or_else(|| {
        let names: Vec<String> = T::ALL.iter().map(T::to_string).collect();
        let (what, names) = (T::WHAT, names.join(", "));
        format!("there is no {what} {text:?}: there are {names}")
    })
}

/// Checks that names are read back, and that others are refused.
#[cfg(test)]
pub(crate) fn assert_named<T: Choice + PartialEq + std::fmt::Debug>() {
    for &one in T::ALL {
        assert_eq!(choice(&one.to_string()), Ok(one));
    }
    let error = choice::<T>("nothing").unwrap_err();
    let last = T::ALL.last().unwrap().to_string();
    assert!(error.contains(T::WHAT) && error.ends_with(&last), "{error}");
}
