//! omnipaxos 0.2.3 behind the command line of Dragnet: the release in which a decided index can go back.

use std::process::ExitCode;

#[path = "../../../crates/dragnet-wild/src/omnipaxos.rs"]
mod omnipaxos;

fn main() -> ExitCode {
    dragnet_cli::main([omnipaxos::entry()])
}

#[cfg(test)]
mod tests {
    use dragnet::catalog::Selection;

    use super::omnipaxos;

    #[test]
    fn a_late_promise_takes_a_decided_index_back() {
        let entry = omnipaxos::entry();
        let check = || entry.check(&Selection::of(&entry)).expect("the defaults");
        let verdict = check().run_under(&Default::default());

        let violation = verdict.violation().expect("an index that goes back");
        assert_eq!(violation.property, "the decided index never goes back");
        let found = verdict
            .counterexample()
            .expect("an execution that shows it");
        assert_eq!(found.len(), 13);

        let again = check().replay(&found.trace).expect("the same execution");
        assert_eq!(again.property, violation.property);
    }
}
