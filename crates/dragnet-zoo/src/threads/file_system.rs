//! Threads that create files, each with a block of its own.
//!
//! The second example of Flanagan and Godefroid (*Dynamic partial-order reduction for model checking software*, POPL
//! 2005), who have it from the file system Frangipani. Each inode and each block has a lock. A thread that finds its
//! inode without a block looks for a block that is not busy. Up to thirteen threads never meet, so that there is one
//! execution; with `n` = 14 there are 2, with 16 there are 8.

use dragnet::catalog::Entry;
use dragnet::sync::{Arc, Mutex};
use dragnet::{Check, Threads};

use super::{join_all, spawn};

/// The program under the name `filesystem`.
pub fn entry() -> Entry {
    Entry::new(
        "filesystem",
        "threads that create files, each with a block of its own",
        |setup| {
            let n = setup.number("n");
            Check::new(Threads::new(move || file_system(n)))
        },
    )
    .parameter("n", 16, 1..=18, "how many threads create files")
}

const INODES: usize = 32;
const BLOCKS: usize = 26;

/// What the threads share.
struct Disk {
    /// The block of each file, once it has one.
    inodes: Vec<Mutex<Option<usize>>>,
    /// Whether a block belongs to a file.
    busy: Vec<Mutex<bool>>,
}

impl Disk {
    fn new() -> Self {
        Self {
            inodes: (0..INODES).map(|_| Mutex::new(None)).collect(),
            busy: (0..BLOCKS).map(|_| Mutex::new(false)).collect(),
        }
    }

    /// Gives a file a block, unless it has one. There are enough for all.
    fn create(&self, inode: usize) -> usize {
        let mut file = self.inodes[inode].lock().unwrap();
        *file.get_or_insert_with(|| self.allocate(inode * 2 % BLOCKS))
    }

    /// Takes the first block from `block` on that is not busy.
    fn allocate(&self, mut block: usize) -> usize {
        loop {
            let mut busy = self.busy[block].lock().unwrap();
            if !*busy {
                *busy = true;
                return block;
            }
            drop(busy);
            block = (block + 1) % BLOCKS;
        }
    }
}

/// `n` threads with a disk.
pub fn file_system(n: usize) {
    let disk = Arc::new(Disk::new());
    let creators: Vec<_> = (0..n)
        .map(|id| {
            let disk = Arc::clone(&disk);
            spawn(format!("creator {id}"), move || disk.create(id % INODES))
        })
        .collect();
    let mut blocks = join_all(creators);
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), n, "two files share a block");
}
