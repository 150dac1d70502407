//! Checks that clauses contradict each other: each step of a proof follows by unit propagation from the clauses before it
//! (reverse unit propagation), and the last one is empty. It shares no code with the search.

/// A literal: a variable from 1 on, negative for its opposite.
pub type Literal = i32;

/// Clauses with what follows from the unit clauses among them.
#[derive(Debug, Default)]
pub struct Checker {
    clauses: Vec<Vec<Literal>>,
    /// By literal: the clauses that watch it.
    watches: Vec<Vec<usize>>,
    /// By variable: whether it is true.
    values: Vec<Option<bool>>,
    trail: Vec<Literal>,
    done: usize,
    contradiction: bool,
}

fn slot(literal: Literal) -> usize {
    literal.unsigned_abs() as usize * 2 + usize::from(literal < 0)
}

impl Checker {
    fn value(&self, literal: Literal) -> Option<bool> {
        let value = self.values.get(literal.unsigned_abs() as usize).copied().flatten()?;
        Some(value == (literal > 0))
    }

    fn assume(&mut self, literal: Literal) {
        self.values[literal.unsigned_abs() as usize] = Some(literal > 0);
        self.trail.push(literal);
    }

    /// Adds a clause that holds.
    pub fn add(&mut self, clause: &[Literal]) {
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        for literal in &clause {
            let most = literal.unsigned_abs() as usize + 1;
            if self.values.len() < most {
                self.values.resize(most, None);
                self.watches.resize_with(most * 2, Vec::new);
            }
        }
        // Literals that are not false come first, so that they are watched.
        clause.sort_by_key(|literal| self.value(*literal) == Some(false));
        match clause.as_slice() {
            [] => self.contradiction = true,
            [first, rest @ ..] => {
                let (first, second) = (*first, rest.first().copied());
                match self.value(first) {
                    Some(false) => self.contradiction = true,
                    None if second.is_none_or(|second| self.value(second) == Some(false)) => self.assume(first),
                    _ => {}
                }
                if let Some(second) = second {
                    let index = self.clauses.len();
                    self.watches[slot(first)].push(index);
                    self.watches[slot(second)].push(index);
                    self.clauses.push(clause);
                }
            }
        }
        if !self.propagate() {
            self.contradiction = true;
        }
    }

    /// Whether the clauses contradict each other without a search.
    pub fn is_contradiction(&self) -> bool {
        self.contradiction
    }

    /// Whether a clause follows from those before by unit propagation.
    pub fn follows(&mut self, clause: &[Literal]) -> bool {
        if self.contradiction {
            return true;
        }
        let before = self.trail.len();
        let mut follows = false;
        for literal in clause {
            let known = self.values.get(literal.unsigned_abs() as usize).is_some();
            match self.value(*literal) {
                Some(true) => follows = true,
                None if known => self.assume(-literal),
                _ => {}
            }
            if follows {
                break;
            }
        }
        follows = follows || !self.propagate();
        for literal in self.trail.drain(before..) {
            self.values[literal.unsigned_abs() as usize] = None;
        }
        self.done = before;
        follows
    }

    /// Makes true what each clause leaves no choice about; false if a clause cannot hold.
    fn propagate(&mut self) -> bool {
        while let Some(literal) = self.trail.get(self.done).copied() {
            self.done += 1;
            let watching = std::mem::take(&mut self.watches[slot(-literal)]);
            let mut kept = Vec::new();
            let mut fine = true;
            for (at, index) in watching.iter().enumerate() {
                if self.clauses[*index][0] == -literal {
                    self.clauses[*index].swap(0, 1);
                }
                let first = self.clauses[*index][0];
                if self.value(first) == Some(true) {
                    kept.push(*index);
                    continue;
                }
                let other =
                    (2..self.clauses[*index].len()).find(|at| self.value(self.clauses[*index][*at]) != Some(false));
                if let Some(other) = other {
                    self.clauses[*index].swap(1, other);
                    let watched = self.clauses[*index][1];
                    self.watches[slot(watched)].push(*index);
                    continue;
                }
                kept.push(*index);
                if self.value(first) == Some(false) {
                    kept.extend(&watching[at + 1..]);
                    fine = false;
                    break;
                }
                self.assume(first);
            }
            self.watches[slot(-literal)].extend(kept);
            if !fine {
                return false;
            }
        }
        true
    }
}

/// Whether a proof shows that the clauses contradict each other.
pub fn check(clauses: &[Vec<Literal>], proof: &[Vec<Literal>]) -> bool {
    let mut checker = Checker::default();
    for clause in clauses {
        checker.add(clause);
    }
    for step in proof {
        if checker.is_contradiction() {
            return true;
        }
        if !checker.follows(step) {
            return false;
        }
        checker.add(step);
    }
    checker.is_contradiction()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_accepted_only_if_each_step_follows() {
        let clauses = [vec![1, 2], vec![1, -2], vec![-1, 2], vec![-1, -2]];
        assert!(check(&clauses, &[vec![1]]));
        assert!(!check(&clauses, &[]));
        for left_out in 0..clauses.len() {
            let mut fewer = clauses.to_vec();
            fewer.remove(left_out);
            assert!(!check(&fewer, &[vec![1]]), "{left_out}");
            assert!(!check(&fewer, &[vec![1], vec![]]), "{left_out}");
        }
        assert!(!check(&[vec![1, 2]], &[vec![1], vec![]]));
        assert!(!check(&[vec![1, 2], vec![3, 4]], &[vec![-1]]));
    }

    #[test]
    fn propagation_backtracks_between_steps() {
        let clauses = [vec![1, 2, 3], vec![-1, 4], vec![-2, 4], vec![-3, 4], vec![-4, 5], vec![-4, -5]];
        assert!(check(&clauses, &[vec![4], vec![]]));
        assert!(check(&clauses, &[vec![-4]]));
        assert!(!check(&clauses[..5], &[vec![4], vec![]]));
    }
}
