//! The steps of a change.

use std::fmt;

use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};

use crate::plan::LinkId;

/// A step on the way from one network to another, in the order in which they are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Removes the devices of a link.
    RemoveLink(LinkId),
    /// Ends everything in an AS, and removes its namespace. Its folder stays.
    RemoveAs(IsdAsn),
    /// Gives a link its rate, delay, jitter, loss, queue and MTU, while packets cross it.
    SetLink(LinkId),
    /// Makes the keys, files, namespace and addresses of an AS; keys in its folder are kept.
    AddAs(IsdAsn),
    /// Gives an AS the addresses of its routers, and the MTU of its own network.
    SetHost(IsdAsn),
    /// Makes the devices of a link.
    AddLink(LinkId),
    /// Writes `topology.json` and `links.json` of an AS.
    Configure(IsdAsn),
    /// Starts the services of an AS.
    Start(IsdAsn),
    /// Ends the border routers of an AS, and starts those that it is to have.
    ReplaceRouters(IsdAsn),
    /// Has the border routers of an AS go over to its `topology.json`.
    ReloadRouters(IsdAsn),
    /// Gives an AS its plain-IP routes to the hosts of the others.
    SetRoutes(IsdAsn),
    /// Gives the ASes of an ISD their roles: keys, certificates, and the TRC, which all ASes get.
    UpdateTrc(u16),
    /// Writes `network.json`, from which control services make segments.
    Publish,
    /// Has the control service of an AS read the network.
    ReloadControl(IsdAsn),
    /// Removes the folder of an AS that was removed.
    Forget(IsdAsn),
}

impl Step {
    /// What it is for users: its name and its object.
    fn words(&self) -> (&'static str, String) {
        match self {
            Self::RemoveLink(link) => ("remove link", link.to_string()),
            Self::RemoveAs(isd_as) => ("remove AS", isd_as.to_string()),
            Self::SetLink(link) => ("change link", link.to_string()),
            Self::AddAs(isd_as) => ("add AS", isd_as.to_string()),
            Self::SetHost(isd_as) => ("set addresses of", isd_as.to_string()),
            Self::AddLink(link) => ("add link", link.to_string()),
            Self::Configure(isd_as) => ("configure", isd_as.to_string()),
            Self::Start(isd_as) => ("start services of", isd_as.to_string()),
            Self::ReplaceRouters(isd_as) => ("replace routers of", isd_as.to_string()),
            Self::ReloadRouters(isd_as) => ("reload routers of", isd_as.to_string()),
            Self::SetRoutes(isd_as) => ("set plain-IP routes of", isd_as.to_string()),
            Self::UpdateTrc(isd) => ("update the TRC of ISD", isd.to_string()),
            Self::Publish => ("publish the network", String::new()),
            Self::ReloadControl(isd_as) => ("reload control service of", isd_as.to_string()),
            Self::Forget(isd_as) => ("remove folder of", isd_as.to_string()),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, of) = self.words();
        match of.is_empty() {
            true => f.write_str(what),
            false => write!(f, "{what} {of}"),
        }
    }
}

/// A step of [`Lab::apply`](crate::Lab::apply), for users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LabStep {
    /// What is done, such as `add link`.
    pub step: &'static str,
    /// To what: an AS, or a link as `1-ff00:0:110#1 - 1-ff00:0:111#1`; empty if to the whole lab.
    pub of: String,
}

impl From<&Step> for LabStep {
    fn from(step: &Step) -> Self {
        let (step, of) = step.words();
        Self { step, of }
    }
}

impl fmt::Display for LabStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of.is_empty() {
            true => f.write_str(self.step),
            false => write!(f, "{} {}", self.step, self.of),
        }
    }
}
