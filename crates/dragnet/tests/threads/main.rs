//! Programs with threads, tasks and processes, and what a check says of them.

mod futures;
mod network;
mod numbers;
mod programs;
