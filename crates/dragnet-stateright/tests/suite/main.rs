//! Stateright models and actors, checked by Dragnet.

mod carried_over;
mod models;
mod nodes;
mod published;
mod random;
