//! Changes of the kernel's state, one request each, and what they do.

use crate::htb::Class;
use crate::limit::Owner;
use crate::state::{
    DEFAULT_CLASS, Filter, Filters, Host, Ifb, Ingress, KernelState, Point, ROOT_TABLE, Root,
    Shaper, Spot, Then,
};

/// A change of a device's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    AddIfb(u8),
    /// Sets an IFB up, with its queue length and alias.
    PrepareIfb {
        ifb: u8,
        made_ingress: bool,
    },
    DelIfb(u8),
    /// Removes a root queueing discipline that hawser did not set.
    DelForeignRoot(Host),
    AddRoot(Host),
    DelRoot(Host),
    PutClass {
        host: Host,
        minor: u16,
        class: Class,
        owner: Owner,
        new: bool,
    },
    DelClass {
        host: Host,
        minor: u16,
    },
    /// Sets the queue of a class, in bytes.
    PutQueue {
        host: Host,
        minor: u16,
        bytes: u32,
    },
    AddIngress,
    DelIngress,
    AddTable {
        point: Point,
        preference: u16,
        table: u16,
    },
    DelTable {
        point: Point,
        preference: u16,
        table: u16,
    },
    /// Adds a filter, or changes what it does.
    PutNode {
        point: Point,
        spot: Spot,
        number: u16,
        filter: Filter,
        new: bool,
    },
    DelNode {
        point: Point,
        spot: Spot,
        number: u16,
    },
    /// Removes all filters of a preference; with the last one also all tables.
    DelPreference {
        point: Point,
        preference: u16,
    },
}

impl Change {
    /// Whether an IFB is created, set up or removed.
    pub fn is_of_ifb(&self) -> bool {
        matches!(
            self,
            Self::AddIfb(_) | Self::PrepareIfb { .. } | Self::DelIfb(_)
        )
    }
}

impl KernelState {
    /// What planned changes do.
    pub fn apply_all(&mut self, changes: &[Change]) {
        for change in changes {
            let applied = self.apply(change);
            debug_assert!(applied.is_ok(), "{change:?}: {applied:?}");
        }
    }

    /// What a change does, as the kernel does it.
    ///
    /// # Errors
    /// When the kernel would refuse it, why.
    pub fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        match *change {
            Change::AddIfb(ifb) => {
                free(self.ifbs.insert(ifb, Ifb::default()))?;
                self.shapers.insert(Host::Ifb(ifb), Shaper::default());
            }
            Change::PrepareIfb { ifb, made_ingress } => {
                *self.ifbs.get_mut(&ifb).ok_or("no such IFB")? = Ifb {
                    ready: true,
                    made_ingress,
                };
            }
            Change::DelIfb(ifb) => {
                self.ifbs.remove(&ifb).ok_or("no such IFB")?;
                self.shapers.remove(&Host::Ifb(ifb));
            }
            Change::DelForeignRoot(host) => {
                let root = &mut self.shaper(host)?.root;
                matches!(root, Root::Foreign { .. })
                    .then(|| *root = Root::Free)
                    .ok_or("no foreign root")?;
            }
            Change::AddRoot(host) => {
                let shaper = self.shaper(host)?;
                (shaper.root == Root::Free)
                    .then(|| shaper.root = Root::Htb)
                    .ok_or("there is a root")?;
            }
            Change::DelRoot(host) => {
                *self.htb(host)? = Shaper::default();
            }
            Change::PutClass {
                host,
                minor,
                class,
                new,
                ..
            } => {
                let classes = &mut self.htb(host)?.classes;
                if classes.insert(minor, class).is_some() == new {
                    return Err("a class is new, or is not");
                }
            }
            Change::DelClass { host, minor } => {
                let shaper = self.htb(host)?;
                if shaper.filters.has_class(minor) {
                    return Err("a filter has the class");
                }
                shaper.classes.remove(&minor).ok_or("no such class")?;
                shaper.queues.remove(&minor);
            }
            Change::PutQueue { host, minor, bytes } => {
                let shaper = self.htb(host)?;
                if !shaper.classes.contains_key(&minor) {
                    return Err("no such class");
                }
                shaper.queues.insert(minor, bytes);
            }
            Change::AddIngress => {
                let new = Ingress {
                    foreign_filters: false,
                };
                free(self.ingress.replace(new))?;
            }
            Change::DelIngress => {
                self.ingress.take().ok_or("no ingress")?;
                self.ingress_filters = Filters::default();
            }
            Change::AddTable {
                point,
                preference,
                table,
            } => {
                let filters = self.filters_mut(point)?;
                free(filters.tables.insert(table, preference))?;
                filters.preferences.insert(preference);
            }
            Change::DelTable { point, table, .. } => {
                let filters = self.filters_mut(point)?;
                let to =
                    |then: &Then| matches!(then, Then::Table { table: to, .. } if *to == table);
                if filters.nodes.values().any(|node| to(&node.then)) {
                    return Err("a filter leads to the table");
                }
                filters.tables.remove(&table).ok_or("no such table")?;
                filters.nodes.retain(|(spot, _), _| spot.table != table);
            }
            Change::PutNode {
                point,
                spot,
                number,
                ref filter,
                new,
            } => self.put_node(point, spot, number, filter, new)?,
            Change::DelNode {
                point,
                spot,
                number,
            } => {
                let nodes = &mut self.filters_mut(point)?.nodes;
                nodes.remove(&(spot, number)).ok_or("no such filter")?;
            }
            Change::DelPreference { point, preference } => {
                let filters = self.filters_mut(point)?;
                if !filters.preferences.remove(&preference) {
                    return Err("no such preference");
                }
                let is_root =
                    |spot: &Spot| spot.preference == preference && spot.table == ROOT_TABLE;
                filters.nodes.retain(|(spot, _), _| !is_root(spot));
                filters.root_tables.remove(&preference);
                if filters.preferences.is_empty() {
                    *filters = Filters::default();
                }
            }
        }
        Ok(())
    }

    fn put_node(
        &mut self,
        point: Point,
        spot: Spot,
        number: u16,
        filter: &Filter,
        new: bool,
    ) -> Result<(), &'static str> {
        let there = match (filter.then, point) {
            (Then::Redirect(ifb), _) => self.ifbs.contains_key(&ifb),
            (Then::Class(DEFAULT_CLASS) | Then::Other, _) | (Then::Class(_), Point::Ingress) => {
                false
            }
            (Then::Class(minor), Point::Root(host)) => self.htb(host)?.classes.contains_key(&minor),
            (Then::Table { table, .. }, _) => self.filters_mut(point)?.tables.contains_key(&table),
        };
        if !there {
            return Err("the filter leads nowhere");
        }
        let filters = self.filters_mut(point)?;
        if spot.table != ROOT_TABLE && filters.tables.get(&spot.table) != Some(&spot.preference) {
            return Err("no such table");
        }
        filters.preferences.insert(spot.preference);
        let old = filters.nodes.insert((spot, number), filter.clone());
        match old {
            None if new => Ok(()),
            Some(old) if !new && old.keys == filter.keys => Ok(()),
            _ => Err("a filter is new, or is not"),
        }
    }

    fn shaper(&mut self, host: Host) -> Result<&mut Shaper, &'static str> {
        match host {
            Host::Device => Ok(self.shapers.entry(host).or_default()),
            Host::Ifb(_) => self.shapers.get_mut(&host).ok_or("no such IFB"),
        }
    }

    fn htb(&mut self, host: Host) -> Result<&mut Shaper, &'static str> {
        let shaper = self.shaper(host)?;
        (shaper.root == Root::Htb)
            .then_some(shaper)
            .ok_or("the root is not hawser's")
    }

    fn filters_mut(&mut self, point: Point) -> Result<&mut Filters, &'static str> {
        match point {
            Point::Root(host) => Ok(&mut self.htb(host)?.filters),
            Point::Ingress if self.ingress.is_none() => Err("no ingress"),
            Point::Ingress => Ok(&mut self.ingress_filters),
        }
    }
}

fn free<T>(old: Option<T>) -> Result<(), &'static str> {
    match old {
        None => Ok(()),
        Some(_) => Err("it exists"),
    }
}
