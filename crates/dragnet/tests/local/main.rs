//! The local engine says what breadth first says: systems in which a shortcut would change the verdict.
//!
//! Local model checking as it was published cuts corners that it can afford as a hunter of bugs (*Model Checking a
//! Networked System Without the Network*, section 4.2), and what prunes impossible histories must not prune possible
//! ones. Here is the smallest system that we know for each such corner. Most of them are tables: a node in a state, what
//! happens to it, the state after it, and what it does. What no row speaks of changes nothing.
//!
//! Each system is checked at every level of pruning, by one thread and by two, and as four kinds of property. All must
//! come to the verdict of breadth first, with an execution that can be replayed, the same whatever the threads.

mod boundaries;
mod budgets;
mod labels;
mod limits;
mod networks;
mod shortcuts;
mod table;
mod threads;
mod verdicts;
