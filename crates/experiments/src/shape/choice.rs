//! Things that are chosen by their names on the command line.

use std::fmt::Display;

/// A thing that is chosen by its name, which [`Display`] writes.
pub trait Choice: Copy + PartialEq + Display + 'static {
    /// What it is called: `carrier`.
    const WHAT: &'static str;
    /// All of them.
    const ALL: &'static [Self];

    /// Those chosen, once each, or all if none is.
    fn chosen(chosen: &[Self]) -> Vec<Self> {
        let mut once: Vec<Self> = Vec::new();
        for &one in chosen {
            if !once.contains(&one) {
                once.push(one);
            }
        }
        match once[..] {
            [] => Self::ALL.to_vec(),
            _ => once,
        }
    }
}

/// Declares an enumeration whose values are chosen by their names.
macro_rules! choices {
    ($(#[$about:meta])* $name:ident, $what:literal { $($(#[$doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self {
                    $(Self::$value => $text,)*
                })
            }
        }

        impl $crate::shape::Choice for $name {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &[$(Self::$value),*];
        }
    };
}

pub(crate) use choices;

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

/// Checks that names are read back, that others are refused, and that what is named runs once.
#[cfg(test)]
pub(crate) fn assert_named<T: Choice + std::fmt::Debug>() {
    for &one in T::ALL {
        assert_eq!(choice(&one.to_string()), Ok(one));
    }
    let error = choice::<T>("nothing").unwrap_err();
    let last = T::ALL.last().unwrap().to_string();
    assert!(error.contains(T::WHAT) && error.ends_with(&last), "{error}");
    let (first, last) = (T::ALL[0], T::ALL[T::ALL.len() - 1]);
    assert_eq!(T::chosen(&[last, first, last]), [last, first]);
    assert_eq!(T::chosen(&[]), T::ALL);
}
