//! The most recent ids, in bounded memory.

use std::collections::HashSet;

use uuid::Uuid;

/// Remembers the last ids: at least as many as its size, at most twice as many.
#[derive(Debug)]
pub(crate) struct Recent {
    size: usize,
    young: HashSet<Uuid>,
    old: HashSet<Uuid>,
}

impl Recent {
    pub(crate) fn of_size(size: usize) -> Self {
        Self { size, young: HashSet::new(), old: HashSet::new() }
    }

    /// Adds an id; returns whether it was not remembered.
    pub(crate) fn insert(&mut self, id: Uuid) -> bool {
        let is_new = !self.old.contains(&id) && self.young.insert(id);
        if self.young.len() >= self.size {
            self.old = std::mem::take(&mut self.young);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::Recent;

    #[test]
    fn the_last_ids_are_remembered() {
        let mut recent = Recent::of_size(3);
        let mut insert = |id| recent.insert(Uuid::from_u128(id));
        assert!((0..4).all(&mut insert));
        assert!(!(1..4).any(&mut insert));
        assert!((4..9).all(&mut insert));
        assert!(insert(0), "forgotten");
        assert!(!insert(8));
    }
}
