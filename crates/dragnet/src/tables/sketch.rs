//! How many distinct fingerprints there are, estimated in a fixed amount of memory.
//!
//! This is a HyperLogLog sketch (Flajolet, Fusy, Gandouet and Meunier, *HyperLogLog: the analysis of a near-optimal
//! cardinality estimation algorithm*, AofA 2007): a fingerprint falls into one of 2^14 registers, each of which keeps the
//! greatest number of leading zeros that it was shown. What deviates from the paper is the estimate, which is that of
//! LogLog-Beta (Qin, Kim and Tung, *LogLog-Beta and more*, 2016): one formula for few and for many. Its standard error is
//! 1.04 / 2^7, less than one in a hundred.
//!
//! # Protocol
//!
//! Any number of workers add at once. A register only grows, by a compare-and-swap, and whoever has made it grow takes the
//! difference off the sum of all. Registers commute, so what is estimated once all workers are done depends on the
//! fingerprints alone, and not on who added them in which order. Nothing is published through a register: every access is
//! relaxed.

use crate::trace::{Fingerprint, scatter};
use crate::weave::{AtomicU32, AtomicU64, Ordering};

/// How many bits of a fingerprint say which register it falls into.
const BITS: u32 = if cfg!(loom) { 1 } else { 14 };
const REGISTERS: usize = 1 << BITS;

/// Registers go up to this. The sum of 2^-r over all registers r is kept in units of 2^-`GREATEST`.
const GREATEST: u32 = 64 - BITS - 1;

pub(crate) struct Sketch {
    registers: Box<[AtomicU32]>,
    sum: AtomicU64,
    /// How many registers are zero.
    zeros: AtomicU64,
}

impl Sketch {
    pub(crate) fn new() -> Self {
        Self {
            registers: (0..REGISTERS).map(|_| AtomicU32::new(0)).collect(),
            sum: AtomicU64::new((REGISTERS as u64) << GREATEST),
            zeros: AtomicU64::new(REGISTERS as u64),
        }
    }

    #[inline]
    pub(crate) fn add(&self, fingerprint: Fingerprint) {
        // Fingerprints may be anything that is different for different states.
        let spread = scatter(fingerprint.0);
        let register = &self.registers[(spread >> (64 - BITS)) as usize];
        let rank = ((spread << BITS).leading_zeros() + 1).min(GREATEST);
        let known = register.load(Ordering::Relaxed);
        if known < rank {
            self.grow(register, known, rank);
        }
    }

    #[cold]
    fn grow(&self, register: &AtomicU32, mut known: u32, rank: u32) {
        while known < rank {
            match register.compare_exchange(known, rank, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let less = (1_u64 << (GREATEST - known)) - (1_u64 << (GREATEST - rank));
                    self.sum.fetch_sub(less, Ordering::Relaxed);
                    if known == 0 {
                        self.zeros.fetch_sub(1, Ordering::Relaxed);
                    }
                    return;
                }
                Err(grown) => known = grown,
            }
        }
    }

    /// About how many different fingerprints have been added.
    pub(crate) fn estimate(&self) -> u64 {
        let sum = self.sum.load(Ordering::Relaxed) as f64 / (1_u64 << GREATEST) as f64;
        let zeros = self.zeros.load(Ordering::Relaxed) as f64;
        let count = REGISTERS as f64;
        let alpha = 0.7213 / (1.0 + 1.079 / count);
        let estimate = alpha * count * (count - zeros) / (sum + beta(zeros));
        estimate.round() as u64
    }
}

/// What takes the bias off the estimate, where so many of 2^14 registers are zero.
fn beta(zeros: f64) -> f64 {
    const FACTORS: [f64; 8] = [
        -0.370_393_911,
        0.070_471_823,
        0.173_936_86,
        0.163_398_39,
        -0.092_377_45,
        0.037_380_27,
        -0.005_384_159,
        0.000_424_19,
    ];
    let log = (zeros + 1.0).ln();
    let powers = FACTORS[1..].iter().rev();
    FACTORS[0] * zeros + powers.fold(0.0, |sum, factor| (sum + factor) * log)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn estimate(fingerprints: impl Iterator<Item = u64>) -> u64 {
        let sketch = Sketch::new();
        for fingerprint in fingerprints {
            sketch.add(Fingerprint(fingerprint));
        }
        sketch.estimate()
    }

    #[test]
    fn the_estimate_is_off_by_no_more_than_three_standard_errors() {
        for count in [
            1, 10, 100, 1_000, 10_000, 60_000, 100_000, 1_000_000, 5_000_000,
        ] {
            for begin in [0, 1 << 40] {
                let estimated = estimate(begin..begin + count);
                let off = estimated.abs_diff(count) as f64 / count as f64;
                assert!(off <= 3.0 * 1.04 / 128.0, "{estimated} instead of {count}");
            }
        }
        assert_eq!(estimate(0..0), 0);
        assert_eq!(estimate(0..12), 12);
    }

    #[test]
    fn what_is_added_again_counts_once() {
        let once = estimate(0..50_000);
        assert_eq!(estimate((0..50_000).chain(0..50_000)), once);
    }

    #[test]
    fn the_estimate_is_the_same_with_any_number_of_workers() {
        let alone = estimate(0..100_000);
        let sketch = Sketch::new();
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let sketch = &sketch;
                scope.spawn(move || {
                    for fingerprint in (worker * 30_000)..100_000 {
                        sketch.add(Fingerprint(fingerprint));
                    }
                });
            }
        });
        assert_eq!(sketch.estimate(), alone);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// Whoever has made a register grow takes exactly that off the sum, also where another one does so meanwhile.
    #[test]
    fn the_sum_is_that_of_the_registers_when_two_add_at_once() {
        loom::model(|| {
            let sketch = Arc::new(Sketch::new());
            let other = Arc::clone(&sketch);
            let thread = thread::spawn(move || (0..2).for_each(|n| other.add(Fingerprint(n))));
            (2..4).for_each(|n| sketch.add(Fingerprint(n)));
            thread.join().unwrap();
            let ranks = sketch.registers.iter();
            let ranks = ranks.map(|register| register.load(Ordering::Relaxed));
            let sum: u64 = ranks.map(|rank| 1 << (GREATEST - rank)).sum();
            assert_eq!(sketch.sum.load(Ordering::Relaxed), sum);
        });
    }
}
