//! Runs the parts.

use serde_json::json;

use super::accuracy::Accuracy;
use super::bench::LimitBench;
use super::change::Changes;
use super::figure::file_names;
use super::links::Links;
use super::names::Part;
use super::points::Points;
use super::tool::lacks;
use crate::error::ExperimentError;
use crate::shape::{Bench, Figures, Observe, Outcome, Progress, Table};

impl Bench for LimitBench {
    /// Without root the calling process moves into a user namespace, for which it must have one thread.
    async fn run(&self, observe: Observe<'_>) -> Result<Outcome, ExperimentError> {
        let (mut present, mut skipped) = (self.clone(), Vec::new());
        present.tools.clear();
        for &tool in &self.tools {
            match lacks(tool) {
                None => present.tools.push(tool),
                Some(why) => skipped.push((tool.to_string(), why)),
            }
        }
        for (case, why) in &skipped {
            observe(Progress::Failed { case, why });
        }
        let (table, figures) = (heading(&skipped), Ok(Vec::new()));
        let mut all = Outcome { table, figures };
        for &part in &self.parts {
            observe(Progress::Place(&part.to_string()));
            let bench = present.clone();
            match part {
                Part::Size | Part::Rate => all.extend(Points { bench, part }.run(observe).await?),
                Part::Accuracy => all.extend(Accuracy { bench }.run(observe).await?),
                Part::Links => {
                    let links = Links { bench };
                    all.extend(links.run(observe).await?);
                    let Links { bench } = links;
                    all.extend(Changes { bench }.run(observe).await?);
                }
            }
        }
        Ok(all)
    }

    fn figures(&self) -> Figures {
        let parts = self.parts.iter();
        let names = parts.flat_map(|part| self.ip.iter().flat_map(|ip| file_names(*part, *ip)));
        Figures::Folder(names.collect())
    }
}

/// The table without rows, with the tools that are left out and why.
fn heading(skipped: &[(String, String)]) -> Table {
    let about = "004, chapter 6: limits between two namespaces, offloads of the veth pair on";
    let mut lines = vec![format!("limit: {about}")];
    let left_out = skipped.iter();
    lines.extend(left_out.map(|(tool, why)| format!("{tool} left out: {why}")));
    let skipped = skipped.iter();
    let skipped = skipped.map(|(tool, why)| json!({"tool": tool, "why": why}));
    Table {
        experiment: "limit",
        facts: vec![
            ("about", about.into()),
            ("skipped", skipped.collect::<Vec<_>>().into()),
        ],
        about: lines,
        ..Table::default()
    }
}
