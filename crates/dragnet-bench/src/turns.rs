//! Jobs that are compared take turns, so that a busy moment of the machine meets all of them.

use crate::measure::{Job, MeasureError, Measurement, measure_in_child};

/// How long a job is done again and again before it is another's turn, if it does not take longer.
const SECONDS_A_TURN: f64 = 2.0;
const MOST_JOBS_A_TURN: u32 = 10;

/// How thorough a comparison is.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many runs the best is taken of.
    pub runs: u32,
    /// Whether what takes long is left out.
    pub short_only: bool,
}

/// The best of `runs` turns of each job, each measured in a child; what `accept` refuses makes all of it void. Progress
/// goes to stderr.
pub fn best_of<J, E>(
    runs: u32,
    jobs: &[J],
    accept: impl Fn(&J, &Measurement<J::Found>) -> Result<(), E>,
) -> Result<Vec<Measurement<J::Found>>, E>
where
    J: Job,
    E: From<MeasureError>,
{
    let measure = |job: &J| -> Result<_, E> {
        let measured = measure_in_child(job)?;
        accept(job, &measured)?;
        Ok(measured)
    };
    let mut best: Vec<Option<Measurement<J::Found>>> = vec![None; jobs.len()];
    for run in 1..=runs {
        for (job, best) in jobs.iter().zip(&mut best) {
            eprintln!("{job}, run {run} of {runs}");
            let measured = turn(|| measure(job), J::cost)?;
            *best = Some(match best.take() {
                Some(best) => best.best(measured, J::cost),
                None => measured,
            });
        }
    }
    let best = best.into_iter();
    Ok(best
        .map(|best| best.expect("there is at least one run"))
        .collect())
}

/// One turn: a short job is done again, or a busy moment of the machine would be all of it.
fn turn<F, E>(
    mut measure: impl FnMut() -> Result<Measurement<F>, E>,
    cost: impl Fn(&Measurement<F>) -> f64,
) -> Result<Measurement<F>, E> {
    let mut best = measure()?;
    let mut seconds = best.seconds;
    for _ in 1..MOST_JOBS_A_TURN {
        if seconds >= SECONDS_A_TURN {
            break;
        }
        let measured = measure()?;
        seconds += measured.seconds;
        best = best.best(measured, &cost);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn turn_of(seconds: &[f64]) -> (usize, f64) {
        let mut left = seconds.iter();
        let measure = || {
            Ok::<_, Infallible>(Measurement {
                found: (),
                seconds: *left.next().expect("a turn is over in time"),
                peak_bytes: 1,
                added_bytes: 0,
            })
        };
        let best = turn(measure, |measured| measured.seconds);
        let Ok(best) = best;
        (seconds.len() - left.len(), best.seconds)
    }

    #[test]
    fn a_turn_is_over_when_it_has_lasted_long_enough() {
        assert_eq!(turn_of(&[5.0, 1.0]), (1, 5.0));
        assert_eq!(turn_of(&[1.5, 0.5, 0.1]), (2, 0.5));
    }

    #[test]
    fn a_turn_has_no_more_than_so_many_jobs() {
        assert_eq!(turn_of(&[0.001; 20]), (10, 0.001));
    }
}
