//! `carbon`: the lowest sum of CO2 per gigabyte over the ASes on the path, in grams.

use crate::carbon::{Carbon, is_amount};
use crate::select::candidate::{Candidate, Part, Rank};
use crate::select::kind::{Rule, StrategyKind};

pub(super) const KIND: StrategyKind = StrategyKind {
    by: "carbon",
    by_carbon: true,
    ..StrategyKind::new(
        "carbon",
        "the lowest sum of CO2 per GB over the ASes on the path",
        Rule::Rank(rank),
    )
};

/// Ranks by a [`Carbon`] table, and by the notes of ASes that are not in it.
fn rank(path: &Candidate<'_>, table: &Carbon) -> Rank {
    let mut sum = 0.0;
    let (mut parts, mut known, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (at, isd_as) in path.path.ases().enumerate() {
        let interfaces = path.path.interfaces.iter();
        let crossed = interfaces.filter(|interface| interface.isd_as == isd_as);
        let note = || path.path.metadata.notes.get(at);
        let in_table = table.crossing(isd_as, crossed);
        let found = in_table
            .map(|value| (value, "file"))
            .or_else(|| Some((noted(note()?)?, "note")));
        parts.push(Part {
            isd_as,
            amount: found.map(|(value, _)| value),
            source: found.map(|(_, source)| source),
        });
        match found {
            Some((value, source)) => {
                sum += value;
                known.push(format!("{} from {isd_as} ({source})", grams(value)));
            }
            None => missing.push(isd_as.to_string()),
        }
    }
    let amount = (!known.is_empty()).then_some(grams(sum));
    let all_known = missing.is_empty();
    let total = match amount {
        _ if all_known => format!("carbon {} g/GB", grams(sum)),
        None => "carbon unknown".to_owned(),
        Some(amount) => format!("carbon more than {amount} g/GB"),
    };
    if !all_known {
        known.push(format!("nothing known of {}", missing.join(", ")));
    }
    Rank {
        strategy: KIND.name,
        known: all_known,
        // Micrograms; the cast saturates.
        cost: if all_known {
            (sum * 1e6).round() as u64
        } else {
            0
        },
        text: format!("{total}: {}", known.join(", ")),
        amount,
        unit: "g/GB",
        parts,
    }
}

/// The number after `carbon=` in a note, whose words are separated by blanks, commas or semicolons;
/// `None` if it is not an amount.
fn noted(note: &str) -> Option<f64> {
    let mut words = note.split([' ', '\t', '\n', '\r', ',', ';']);
    let text = words.find_map(|word| word.strip_prefix("carbon="))?;
    text.parse().ok().filter(|value| is_amount(*value))
}

/// Rounds to hundredths.
fn grams(value: f64) -> f64 {
    (value * 1e2).round() / 1e2
}
