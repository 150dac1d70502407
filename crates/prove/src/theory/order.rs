//! Numbers in an order that atoms demand.

use std::collections::BTreeSet;

use super::{Conflict, Valued};

/// Numbers in their order: `to - from <= most`, because of an atom, or because numbers have 64 bits.
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub most: i128,
    pub because: Option<Valued>,
}

/// Shortest paths from a node before all (Bellman and Ford); where one still gets shorter, there is a cycle.
pub(super) fn distances(edges: &[Edge], count: usize, rounds: usize) -> Result<Vec<i128>, Conflict> {
    let (mut distance, mut through) = (vec![0_i128; count], vec![None; count]);
    for round in 0..=rounds {
        let mut changed = None;
        for (index, edge) in edges.iter().enumerate() {
            if distance[edge.from] + edge.most < distance[edge.to] {
                distance[edge.to] = distance[edge.from] + edge.most;
                through[edge.to] = Some(index);
                changed = Some(edge.to);
            }
        }
        let Some(mut node) = changed else { break };
        if round == rounds {
            for _ in 0..rounds {
                node = through[node].map_or(node, |edge: usize| edges[edge].from);
            }
            let (mut conflict, start) = (BTreeSet::new(), node);
            while let Some(edge) = through[node].map(|edge| &edges[edge]) {
                conflict.extend(edge.because);
                node = edge.from;
                if node == start {
                    break;
                }
            }
            return Err(conflict.into_iter().collect());
        }
    }
    Ok(distance)
}
