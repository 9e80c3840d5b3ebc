//! Spin loops: which threads are in one, when they are blocked there, and which loops terminate by themselves.
//!
//! An unbounded loop that reads shared variables until another thread changes them has no end of schedules. That such a loop
//! is *blocked* until something that it reads changes is the spin-assume transformation of Kokologiannakis, Ren and Vafeiadis
//! (*Dynamic Partial Order Reductions for Spinloops*, FMCAD 2021); that a thread which yields without progress gives way to
//! those that are enabled is the fair scheduler of Musuvathi and Qadeer (*Fair Stateless Model Checking*, PLDI 2008).
//!
//! What deviates from them:
//! - Loops are found in the execution and not in the source: a thread [spins](detection) where a sequence of operations comes
//!   again and each has seen what it saw before.
//! - A loop may terminate without the others, because it counts or a timeout passes. Before a thread is [blocked](blocking) for
//!   the first time it is run alone, and what comes out is [remembered](termination) for the whole exploration.

pub(crate) mod blocking;
pub(crate) mod detection;
pub(crate) mod termination;
