//! A lock-free stack (R. K. Treiber, *Systems programming: coping with parallelism*, IBM, 1986), as the list of the free
//! slots of a pool.
//!
//! The nodes are an array and links are indices, so a slot that is freed comes back as the same node. A thread that takes
//! the first slot reads the head, reads which node is next, and makes that the head if the head is what it was. But
//! meanwhile others may have taken the first slot and the next one, and put the first back: the head is what it was, and
//! the next node is no longer free. Therefore the head carries a tag that is counted up with every change.
//!
//! With the bug `aba` it carries none, and a slot is given to two threads.

use dragnet::catalog::Entry;
use dragnet::sync::Arc;
use dragnet::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `lock-free-stack`.
pub fn entry() -> Entry {
    Entry::new(
        "lock-free-stack",
        "the free slots of a pool in a Treiber stack",
        |setup| {
            let threads = setup.number("threads");
            let slots = setup.number("slots");
            let tags = match setup.has_bug("aba") {
                true => Tags::None,
                false => Tags::Counted,
            };
            Check::new(Threads::new(move || {
                take_and_give_back(threads, slots, tags)
            }))
        },
    )
    .parameter("threads", 2, 1..=4, "how many threads take slots")
    .parameter("slots", 3, 1..=8, "how many slots there are")
    .bug(
        "aba",
        "the head has no tag: a stale compare-and-exchange succeeds",
        |bug| bug,
    )
}

/// Whether the head of a stack is told apart from an earlier one with the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// It counts up.
    Counted,
    /// It is not.
    None,
}

/// The free slots of a pool.
#[derive(Debug)]
pub struct FreeSlots {
    head: AtomicU64,
    /// Which slot is below each, as a link.
    next: Box<[AtomicU32]>,
    tags: Tags,
}

/// One more than the number of a slot, or this at the end.
const END: u32 = 0;

/// The head as it is stored: a tag, and a link.
#[derive(Clone, Copy)]
struct Head {
    tag: u32,
    link: u32,
}

impl Head {
    fn unpack(packed: u64) -> Self {
        Self {
            tag: (packed >> 32) as u32,
            link: packed as u32,
        }
    }

    fn pack(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.link)
    }
}

impl FreeSlots {
    /// Slots that are all free, the first of them on top.
    pub fn new(count: u32, tags: Tags) -> Self {
        let below = |slot| if slot + 1 < count { slot + 2 } else { END };
        let first = Head {
            tag: 0,
            link: if count > 0 { 1 } else { END },
        };
        Self {
            head: AtomicU64::new(first.pack()),
            next: (0..count).map(|slot| AtomicU32::new(below(slot))).collect(),
            tags,
        }
    }

    /// Takes a slot, if one is free.
    pub fn take(&self) -> Option<u32> {
        let mut head = self.head.load(SeqCst);
        loop {
            let slot = Head::unpack(head).link.checked_sub(1)?;
            let next = self.next[slot as usize].load(SeqCst);
            match self.replace(head, next) {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }

    /// Gives a slot back.
    pub fn give_back(&self, slot: u32) {
        let mut head = self.head.load(SeqCst);
        loop {
            self.next[slot as usize].store(Head::unpack(head).link, SeqCst);
            match self.replace(head, slot + 1) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Makes `link` the head if it is what it was.
    fn replace(&self, head: u64, link: u32) -> Result<u64, u64> {
        let tag = Head::unpack(head).tag;
        let tag = match self.tags {
            Tags::Counted => tag.wrapping_add(1),
            Tags::None => tag,
        };
        let new = Head { tag, link };
        self.head.compare_exchange(head, new.pack(), SeqCst, SeqCst)
    }
}

/// Every thread takes two slots and gives the first one back: in the end each slot has one owner, or is free.
pub fn take_and_give_back(threads: usize, slots: u32, tags: Tags) {
    let free = Arc::new(FreeSlots::new(slots, tags));
    let threads: Vec<_> = (0..threads)
        .map(|id| {
            let free = Arc::clone(&free);
            spawn(format!("user {id}"), move || {
                let first = free.take();
                let second = free.take();
                if let Some(slot) = first {
                    free.give_back(slot);
                }
                second
            })
        })
        .collect();
    let mut owned: Vec<u32> = join_all(threads).into_iter().flatten().collect();
    // What is broken may go in a circle.
    let left = std::iter::from_fn(|| free.take()).take(slots as usize + 1);
    owned.extend(left);
    owned.sort_unstable();
    assert!(
        owned.iter().copied().eq(0..slots),
        "not every slot has one owner: {owned:?}"
    );
}
