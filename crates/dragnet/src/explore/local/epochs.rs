//! Partitions, as each node lives through them.
//!
//! A partition happens to all nodes at one moment, but nodes that are explored one by one have no moment in common. So
//! each node has it happen at some point of its own history, and what must fit together are histories: a message from
//! before it never arrives after it across the cut, one from after it never before it. Cuts of histories that fit
//! together like this are exactly those that one moment can make.

use crate::tables::next_number;
use crate::trace::scatter;

/// What partitions a history has been through, as a tree: the path from the root is the sequence.
pub(super) struct Epochs {
    epochs: Vec<Epoch>,
}

struct Epoch {
    parent: u32,
    depth: u32,
    /// The nodes on the far side, while the network is in two.
    cut: Option<u64>,
    /// How often it fell in two so far.
    partitions: u32,
    hash: u64,
    children: Vec<u32>,
}

/// No partition so far.
pub(super) const WHOLE: u32 = 0;

impl Epochs {
    pub(super) fn new() -> Self {
        Self {
            epochs: vec![Epoch {
                parent: 0,
                depth: 0,
                cut: None,
                partitions: 0,
                hash: 0,
                children: Vec::new(),
            }],
        }
    }

    fn get(&self, epoch: u32) -> &Epoch {
        &self.epochs[epoch as usize]
    }

    /// The nodes on the far side, while the network is in two.
    pub(super) fn cut(&self, epoch: u32) -> Option<u64> {
        self.get(epoch).cut
    }

    /// How often the network has fallen in two or become whole again.
    pub(super) fn depth(&self, epoch: u32) -> u32 {
        self.get(epoch).depth
    }

    pub(super) fn partitions(&self, epoch: u32) -> u32 {
        self.get(epoch).partitions
    }

    pub(super) fn hash(&self, epoch: u32) -> u64 {
        self.get(epoch).hash
    }

    /// The epoch after `epoch` in which the network has fallen in two like this, or is whole again.
    pub(super) fn after(&mut self, epoch: u32, cut: Option<u64>) -> u32 {
        let before = self.get(epoch);
        let mut children = before.children.iter().copied();
        if let Some(known) = children.find(|&child| self.get(child).cut == cut) {
            return known;
        }
        let after = Epoch {
            parent: epoch,
            depth: before.depth + 1,
            cut,
            partitions: before.partitions + u32::from(cut.is_some()),
            hash: scatter(before.hash ^ scatter(cut.unwrap_or(1))),
            children: Vec::new(),
        };
        let id = next_number(self.epochs.len(), "sequences of partitions");
        self.epochs.push(after);
        self.epochs[epoch as usize].children.push(id);
        id
    }

    /// Whether `early` is `late` or comes before it.
    pub(super) fn leads_to(&self, early: u32, mut late: u32) -> bool {
        let depth = self.get(early).depth;
        while self.get(late).depth > depth {
            late = self.get(late).parent;
        }
        early == late
    }

    /// Whether the histories of the two can belong to one execution.
    pub(super) fn comparable(&self, one: u32, two: u32) -> bool {
        one == two || self.leads_to(one, two) || self.leads_to(two, one)
    }

    /// The last epoch up to `epoch` in which the two nodes were cut off from each other: what was in flight between them
    /// before it is lost.
    pub(super) fn era(&self, mut epoch: u32, one: usize, two: usize) -> u32 {
        while epoch != WHOLE && !self.separates(epoch, one, two) {
            epoch = self.get(epoch).parent;
        }
        epoch
    }

    /// Whether the two nodes are cut off from each other in `epoch`.
    pub(super) fn separates(&self, epoch: u32, one: usize, two: usize) -> bool {
        self.cut(epoch)
            .is_some_and(|far| (far >> one ^ far >> two) & 1 == 1)
    }
}
