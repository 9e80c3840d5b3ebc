//! Hints to the compiler and the processor, with the names and signatures of `std::hint`.

use std::panic::Location;

use super::operation::Action;
use super::world;

pub use std::hint::{assert_unchecked, black_box, unreachable_unchecked};

/// Says that this thread waits for others in a loop. Under a check it lets them go first.
#[track_caller]
pub fn spin_loop() {
    match world::current() {
        None => std::hint::spin_loop(),
        Some(world) => {
            world.operate_on_self(Action::Yield, Location::caller());
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn outside_of_an_execution_a_hint_is_the_real_one() {
        super::spin_loop();
        assert_eq!(super::black_box(3), 3);
    }
}
