//! Threads that go round and round: who waits, who gives up, and who never ends.

mod busy;
mod ending;
mod repeatable;
mod waiting;
