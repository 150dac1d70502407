//! The path from a variable to a part of it.

use std::{cell::RefCell, rc::Rc, sync::Arc};

/// The steps of a way.
///
/// It is a slice as Go has them, which cel-go extends by `append`: where there is room behind a way, two that go on from it
/// differently share their last step, and the later one overwrites the earlier. `x.a[x.b]` is then looked up as elements
/// of `x.b`.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    steps: Rc<RefCell<Vec<Arc<str>>>>,
    len: usize,
}

impl Path {
    /// One step: a variable.
    pub(crate) fn new(step: &str) -> Self {
        Self { steps: Rc::new(RefCell::new(vec![step.into()])), len: 1 }
    }

    /// A step further.
    pub(crate) fn then(&self, step: &str) -> Self {
        let mut steps = self.steps.borrow_mut();
        // Go doubles the room of what is full.
        let room = steps.len().next_power_of_two();
        if self.len == room {
            drop(steps);
            return self.copied(step);
        }
        match steps.get_mut(self.len) {
            Some(overwritten) => *overwritten = step.into(),
            None => steps.push(step.into()),
        }
        Self { steps: Rc::clone(&self.steps), len: self.len + 1 }
    }

    /// A step further, sharing nothing.
    pub(crate) fn copied(&self, step: &str) -> Self {
        let mut steps = self.steps();
        steps.push(step.into());
        Self { len: steps.len(), steps: Rc::new(RefCell::new(steps)) }
    }

    /// The steps as they are now.
    pub(crate) fn steps(&self) -> Vec<Arc<str>> {
        self.steps.borrow()[..self.len].to_vec()
    }
}
