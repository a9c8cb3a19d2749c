//! Network drawings: a force-directed layout from a fixed start, so that the same network always looks the same.

use crate::figure::DrawnPoint;
use crate::style::{COLOURS, GREY, PANEL, TITLE};
use crate::svg::{Anchor, Svg, TextStyle};
use rayon::prelude::*;

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Share of influence; the area of the circle is proportional to it.
    pub share: f64,
    /// Index of the colour in the palette.
    pub colour: usize,
}

/// A link from one agent to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Speaker.
    pub from: usize,
    /// Listener.
    pub to: usize,
    /// Weight in 0…1; heavier links are darker.
    pub weight: f64,
}

/// A network drawing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkChart {
    /// Title.
    pub title: String,
    /// Agents.
    pub nodes: Vec<Node>,
    /// Links.
    pub links: Vec<Link>,
    /// Legend: index of a colour, and its meaning.
    pub legend: Vec<(usize, String)>,
    /// Positions of the agents in the unit square; laid out from the links when empty.
    pub places: Vec<(f64, f64)>,
}

const SIDE: f64 = PANEL.1 + 60.0;
const MARGIN: f64 = 22.0;
const LINE: f64 = 16.0;

/// Up to this many agents all names are shown; above, the names of the largest few.
const NAMED: usize = 60;
const FEW_NAMED: usize = 12;

impl NetworkChart {
    pub(crate) fn size(&self) -> (f64, f64) {
        (SIDE + 10.0, TITLE + 14.0 + self.legend.len() as f64 * LINE + SIDE)
    }

    pub(crate) fn draw(&self, svg: &mut Svg, corner: (f64, f64)) {
        svg.text(
            (corner.0 + 6.0, corner.1 + TITLE),
            &self.title,
            TextStyle { bold: true, ..TextStyle::plain(Anchor::Start) },
        );
        for (row, (colour, words)) in self.legend.iter().enumerate() {
            let place = (corner.0 + 12.0, corner.1 + TITLE + 16.0 + row as f64 * LINE);
            svg.circle(place, 5.0, COLOURS[colour % COLOURS.len()], "#FFFFFF");
            svg.text((place.0 + 10.0, place.1 + 4.0), words, TextStyle::plain(Anchor::Start));
        }
        let top = corner.1 + TITLE + 14.0 + self.legend.len() as f64 * LINE;
        let pairs: Vec<(usize, usize)> = self.links.iter().map(|link| (link.from, link.to)).collect();
        let places =
            if self.places.len() == self.nodes.len() { self.places.clone() } else { layout(self.nodes.len(), &pairs) };
        let spot = |node: usize| {
            let (x, y): (f64, f64) = places[node];
            let space = SIDE - 2.0 * MARGIN;
            (corner.0 + MARGIN + x * space, top + MARGIN + y * space)
        };
        // Larger networks get smaller dots and thinner links.
        let scale = (NAMED as f64 / self.nodes.len().max(NAMED) as f64).sqrt();
        for link in &self.links {
            let width = scale * (0.4 + 2.0 * link.weight.clamp(0.0, 1.0));
            svg.line(spot(link.from), spot(link.to), &faded(link.weight), width);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let radius = 4.0 * scale + 26.0 * scale.sqrt() * node.share.clamp(0.0, 1.0).sqrt();
            svg.circle(spot(index), radius, COLOURS[node.colour % COLOURS.len()], "#FFFFFF");
        }
        // More names would overlap: only the largest agents keep theirs.
        let mut named: Vec<usize> = (0..self.nodes.len()).collect();
        named.sort_by(|&a, &b| self.nodes[b].share.total_cmp(&self.nodes[a].share).then(a.cmp(&b)));
        named.truncate(if self.nodes.len() <= NAMED { NAMED } else { FEW_NAMED });
        named.sort_unstable();
        for index in named {
            let (x, y) = spot(index);
            svg.text(
                (x, y - 7.0),
                &self.nodes[index].name,
                TextStyle { size: 8.5, ..TextStyle::plain(Anchor::Middle) },
            );
        }
    }

    pub(crate) fn points(&self) -> Vec<DrawnPoint> {
        let drawn = |series: &str, x: String, y: f64| DrawnPoint {
            panel: self.title.clone(),
            series: series.to_owned(),
            x,
            y,
            low: None,
            high: None,
        };
        let name = |node: usize| self.nodes.get(node).map_or(String::new(), |node| node.name.clone());
        let nodes = self.nodes.iter().map(|node| drawn("node", node.name.clone(), node.share));
        let links = self.links.iter();
        nodes.chain(links.map(|l| drawn("link", format!("{} → {}", name(l.from), name(l.to)), l.weight))).collect()
    }
}

/// Grey that gets darker with the weight.
fn faded(weight: f64) -> String {
    let level = (215.0 - 120.0 * weight.clamp(0.0, 1.0)).round() as u8;
    if weight >= 1.0 { GREY.to_owned() } else { format!("#{level:02X}{level:02X}{level:02X}") }
}

/// Rounds of the layout, for small and for large networks.
const ROUNDS: usize = 300;
const FEW_ROUNDS: usize = 100;

/// Up to this many agents the repulsion is computed pair by pair.
const PAIRS: usize = 800;

/// Only the strongest speakers of a listener attract it; with all of them every agent would end in the middle.
const SPEAKERS: usize = 4;

/// Agents handled by one task; fixed, so that the thread count changes no bit.
const AGENTS_PER_TASK: usize = 256;

/// Positions in the unit square for a network of weighted edges (speaker, listener, weight).
pub fn places(agents: usize, edges: &[(usize, usize, f64)]) -> Vec<(f64, f64)> {
    // Ties are broken at random: by the order of the agents, all would be attracted to the first ones.
    let shuffled = |speaker: usize, listener: usize| {
        let mixed = ((speaker * agents + listener) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
    };
    let mut heard: Vec<Vec<(f64, u64, usize)>> = vec![Vec::new(); agents];
    for &(speaker, listener, weight) in edges {
        let strongest = &mut heard[listener];
        let entry = (weight, shuffled(speaker, listener), speaker);
        let before = |known: &(f64, u64, usize)| known.0 > weight || known.0 == weight && known.1 >= entry.1;
        let place = strongest.partition_point(before);
        if place < SPEAKERS {
            strongest.insert(place, entry);
            strongest.truncate(SPEAKERS);
        }
    }
    let links = heard
        .iter()
        .enumerate()
        .flat_map(|(listener, strongest)| strongest.iter().map(move |(_, _, speaker)| (*speaker, listener)));
    layout(agents, &links.collect::<Vec<_>>())
}

/// Positions in the unit square: linked agents attract each other, all agents repel each other (Fruchterman and Reingold),
/// starting from a circle.
pub fn layout(nodes: usize, links: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let turn = |node: usize| node as f64 / nodes.max(1) as f64 * std::f64::consts::TAU;
    let mut places: Vec<(f64, f64)> = (0..nodes).map(|node| (turn(node).cos(), turn(node).sin())).collect();
    let links: Vec<(usize, usize)> =
        links.iter().copied().filter(|(a, b)| a != b && *a < nodes && *b < nodes).collect();
    let ideal = 1.0 / (nodes.max(1) as f64).sqrt();
    let rounds = if nodes <= PAIRS { ROUNDS } else { FEW_ROUNDS };
    for round in 0..rounds {
        let mut moves = if nodes <= PAIRS { pushed(&places, ideal) } else { pushed_by_cells(&places, ideal) };
        for &(a, b) in &links {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            let pull = (dx * dx + dy * dy).sqrt() / ideal / 2.0;
            moves[a] = (moves[a].0 - pull * dx, moves[a].1 - pull * dy);
            moves[b] = (moves[b].0 + pull * dx, moves[b].1 + pull * dy);
        }
        let most = 0.1 * (1.0 - round as f64 / rounds as f64);
        for (place, (dx, dy)) in places.iter_mut().zip(moves) {
            // A weak pull towards the centre keeps separate components close.
            let (dx, dy) = (dx - 0.1 * place.0, dy - 0.1 * place.1);
            let far = (dx * dx + dy * dy).sqrt().max(1e-12);
            let step = far.min(most) / far;
            *place = (place.0 + dx * step, place.1 + dy * step);
        }
    }
    let ((left, across), (top, down)) = frame(&places);
    places.iter().map(|(x, y)| ((x - left) / across, (y - top) / down)).collect()
}

/// Repulsion of every agent by all others.
fn pushed(places: &[(f64, f64)], ideal: f64) -> Vec<(f64, f64)> {
    let mut moves = vec![(0.0, 0.0); places.len()];
    for a in 0..places.len() {
        for b in 0..a {
            let (x, y) = push(places[a], places[b], ideal);
            moves[a] = (moves[a].0 + x, moves[a].1 + y);
            moves[b] = (moves[b].0 - x, moves[b].1 - y);
        }
    }
    moves
}

/// Repulsion of one position by another.
fn push(from: (f64, f64), by: (f64, f64), ideal: f64) -> (f64, f64) {
    let (dx, dy) = (from.0 - by.0, from.1 - by.1);
    let push = ideal * ideal / (dx * dx + dy * dy).max(1e-6);
    (push * dx, push * dy)
}

/// The same with the agents of a distant grid cell combined at their mean.
fn pushed_by_cells(places: &[(f64, f64)], ideal: f64) -> Vec<(f64, f64)> {
    // Then there are about as many distant cells as near neighbours.
    let side = (2.0 * (places.len() as f64).powf(0.25)).ceil();
    let ((left, across), (top, down)) = frame(places);
    let cell_of = |place: &(f64, f64)| {
        let along = |value: f64| (value * side).min(side - 1.0) as usize;
        (along((place.0 - left) / across), along((place.1 - top) / down))
    };
    let side = side as usize;
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); side * side];
    for (node, place) in places.iter().enumerate() {
        let (column, row) = cell_of(place);
        members[row * side + column].push(node);
    }
    let middle = |members: &[usize]| {
        let sum = members.iter().fold((0.0, 0.0), |(x, y), &node| (x + places[node].0, y + places[node].1));
        (sum.0 / members.len() as f64, sum.1 / members.len() as f64)
    };
    let cells: Vec<_> = (members.iter().enumerate())
        .filter(|(_, members)| !members.is_empty())
        .map(|(cell, members)| (cell % side, cell / side, middle(members), members.as_slice()))
        .collect();
    let mut moves = vec![(0.0, 0.0); places.len()];
    moves.par_chunks_mut(AGENTS_PER_TASK).enumerate().for_each(|(task, moves)| {
        for (offset, total) in moves.iter_mut().enumerate() {
            let node = task * AGENTS_PER_TASK + offset;
            let (place, home) = (places[node], cell_of(&places[node]));
            for (column, row, middle, members) in &cells {
                if column.abs_diff(home.0) > 1 || row.abs_diff(home.1) > 1 {
                    let (x, y) = push(place, *middle, ideal);
                    let many = members.len() as f64;
                    *total = (total.0 + many * x, total.1 + many * y);
                    continue;
                }
                for &other in members.iter().filter(|other| **other != node) {
                    let (x, y) = push(place, places[other], ideal);
                    *total = (total.0 + x, total.1 + y);
                }
            }
        }
    });
    moves
}

/// Lower end and length of the range of places, across and down.
fn frame(places: &[(f64, f64)]) -> ((f64, f64), (f64, f64)) {
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = places.iter().map(of).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        (low, (high - low).max(1e-9))
    };
    (range(|place| place.0), range(|place| place.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_stable_and_stay_in_the_square() {
        let links = [(0, 1), (1, 2), (2, 0), (3, 4), (9, 0), (1, 1)];
        let places = layout(6, &links);
        assert_eq!(places, layout(6, &links));
        assert!(places.iter().all(|(x, y)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y)));
        let far = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
        assert!(far(0, 1) < far(0, 4));
        assert!(layout(0, &[]).is_empty() && layout(1, &[]).len() == 1);
    }

    #[test]
    fn large_networks_are_laid_out_as_small_ones_are() {
        let places: Vec<(f64, f64)> =
            (0..900u32).map(|node| (f64::from(node * 37 % 901) / 900.0, f64::from(node * 91 % 907) / 900.0)).collect();
        let (pairs, cells) = (pushed(&places, 0.03), pushed_by_cells(&places, 0.03));
        let gap: f64 = pairs.iter().zip(&cells).map(|(a, b)| (a.0 - b.0).hypot(a.1 - b.1)).sum();
        let size: f64 = pairs.iter().map(|a| a.0.hypot(a.1)).sum();
        // Far cells are taken for points: a few per cent.
        assert!(gap < 0.05 * size, "{gap} of {size}");
        let links: Vec<(usize, usize, f64)> = (1..2000).map(|node| (node / 2, node, 0.5)).collect();
        let met = super::places(2000, &links);
        assert_eq!(met, super::places(2000, &links));
        assert!(met.iter().all(|(x, y)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y)));
    }
}
