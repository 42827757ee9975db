//! Maps of networks, as text and as pictures.

mod drawing;
mod geometry;
mod graph;
mod labels;
mod layout;
mod svg;
mod text;

pub use self::graph::{Edge, Graph, Node, Tip};
pub use self::svg::{Picture, draw};
pub use self::text::map as text;
