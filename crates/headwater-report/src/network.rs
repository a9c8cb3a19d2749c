//! Who is linked to whom, laid out by forces from a fixed start, so that the same network always looks the same.

use crate::figure::Drawn;
use crate::style::{COLOURS, GREY, PANEL, TITLE};
use crate::svg::{Anchor, Look, Svg};

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its share of something; areas are in proportion.
    pub share: f64,
    /// Number of its colour in the house palette.
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

/// A network.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Network {
    /// Above it.
    pub title: String,
    /// Agents.
    pub nodes: Vec<Node>,
    /// Links.
    pub links: Vec<Link>,
    /// What colours mean: number and words.
    pub legend: Vec<(usize, String)>,
}

const SIDE: f64 = PANEL.1 + 60.0;
const MARGIN: f64 = 22.0;
const LINE: f64 = 16.0;

impl Network {
    pub(crate) fn size(&self) -> (f64, f64) {
        (SIDE + 10.0, TITLE + 14.0 + self.legend.len() as f64 * LINE + SIDE)
    }

    pub(crate) fn draw(&self, svg: &mut Svg, corner: (f64, f64)) {
        svg.text((corner.0 + 6.0, corner.1 + TITLE), &self.title, Look { bold: true, ..Look::plain(Anchor::Start) });
        for (row, (colour, words)) in self.legend.iter().enumerate() {
            let place = (corner.0 + 12.0, corner.1 + TITLE + 16.0 + row as f64 * LINE);
            svg.circle(place, 5.0, COLOURS[colour % COLOURS.len()], "#FFFFFF");
            svg.text((place.0 + 10.0, place.1 + 4.0), words, Look::plain(Anchor::Start));
        }
        let top = corner.1 + TITLE + 14.0 + self.legend.len() as f64 * LINE;
        let pairs: Vec<(usize, usize)> = self.links.iter().map(|link| (link.from, link.to)).collect();
        let places = layout(self.nodes.len(), &pairs);
        let spot = |node: usize| {
            let (x, y): (f64, f64) = places[node];
            let room = SIDE - 2.0 * MARGIN;
            (corner.0 + MARGIN + x * room, top + MARGIN + y * room)
        };
        for link in &self.links {
            let width = 0.4 + 2.0 * link.weight.clamp(0.0, 1.0);
            svg.line(spot(link.from), spot(link.to), &faded(link.weight), width);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let radius = 4.0 + 26.0 * node.share.clamp(0.0, 1.0).sqrt();
            svg.circle(spot(index), radius, COLOURS[node.colour % COLOURS.len()], "#FFFFFF");
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let (x, y) = spot(index);
            svg.text((x, y - 7.0), &node.name, Look { size: 8.5, ..Look::plain(Anchor::Middle) });
        }
    }

    pub(crate) fn points(&self) -> Vec<Drawn> {
        let drawn = |series: &str, x: String, y: f64| Drawn {
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

/// Rounds of pushing and pulling.
const ROUNDS: usize = 300;

/// Places in the unit square: linked agents attract, all others repel (Fruchterman and Reingold), from a circle.
pub fn layout(nodes: usize, links: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let turn = |node: usize| node as f64 / nodes.max(1) as f64 * std::f64::consts::TAU;
    let mut places: Vec<(f64, f64)> = (0..nodes).map(|node| (turn(node).cos(), turn(node).sin())).collect();
    let links: Vec<(usize, usize)> =
        links.iter().copied().filter(|(a, b)| a != b && *a < nodes && *b < nodes).collect();
    let ideal = 1.0 / (nodes.max(1) as f64).sqrt();
    for round in 0..ROUNDS {
        let mut moves = vec![(0.0, 0.0); nodes];
        for a in 0..nodes {
            for b in 0..a {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let square = (dx * dx + dy * dy).max(1e-6);
                let push = ideal * ideal / square;
                moves[a] = (moves[a].0 + push * dx, moves[a].1 + push * dy);
                moves[b] = (moves[b].0 - push * dx, moves[b].1 - push * dy);
            }
        }
        for &(a, b) in &links {
            let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
            let pull = (dx * dx + dy * dy).sqrt() / ideal / 2.0;
            moves[a] = (moves[a].0 - pull * dx, moves[a].1 - pull * dy);
            moves[b] = (moves[b].0 + pull * dx, moves[b].1 + pull * dy);
        }
        let most = 0.1 * (1.0 - round as f64 / ROUNDS as f64);
        for (place, (dx, dy)) in places.iter_mut().zip(moves) {
            // Towards the middle a little, so that parts that are not linked stay on the page.
            let (dx, dy) = (dx - 0.1 * place.0, dy - 0.1 * place.1);
            let far = (dx * dx + dy * dy).sqrt().max(1e-12);
            let step = far.min(most) / far;
            *place = (place.0 + dx * step, place.1 + dy * step);
        }
    }
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = places.iter().map(of).fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        (low, (high - low).max(1e-9))
    };
    let ((left, across), (top, down)) = (range(|place| place.0), range(|place| place.1));
    places.iter().map(|(x, y)| ((x - left) / across, (y - top) / down)).collect()
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
}
