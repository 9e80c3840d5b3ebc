//! What Dragnet found in `noraft` 0.5.0, without Dragnet: one node, the messages that it gets, and its disk.
//!
//! The node has led term 2 and holds an entry of its own at index 3, where the leader of term 3 has a command. It begins
//! to mend its log, which the crate does in memory first; it crashes, and comes back with the log that is on its disk.
//! Then the leader's answer to what it said before the crash arrives, and is written behind the wrong entry.

use noraft_0_5::{
    Action, ClusterConfig, Log, LogEntries, LogEntry, LogIndex, LogPosition, Message, Node,
    NodeGeneration, NodeId, Term,
};

const LEADER: NodeId = NodeId::new(0);
const ME: NodeId = NodeId::new(1);
const OTHER: NodeId = NodeId::new(2);

#[test]
fn a_node_of_0_5_0_that_crashes_while_its_log_is_mended_commits_what_its_leader_never_had() {
    let mut node = Node::start(ME);
    let mut disk = LogEntries::new(LogPosition::ZERO);

    // It becomes a follower in term 1, and then the leader of term 2.
    let beginning = [LogEntry::ClusterConfig(voters()), term(1)];
    node.handle_message(&append(1, 0, LogPosition::ZERO, &beginning));
    save(&mut node, &mut disk);
    node.handle_election_timeout();
    node.handle_message(&Message::RequestVoteReply {
        from: OTHER,
        term: Term::new(2),
        vote_granted: true,
    });
    save(&mut node, &mut disk);
    assert_eq!(terms(node.log()), [0, 1, 2]);

    // Node 0 leads term 3. Its log has a command of term 1 where this node has the beginning of term 2.
    node.handle_message(&append(3, 0, position(1, 3), &[term(3)]));
    save(&mut node, &mut disk);
    assert_eq!(terms(node.log()), [0, 1], "in memory, the entry is gone");

    // It restarts with what it was told to save.
    let log = Log::new(ClusterConfig::new(), disk.clone());
    let mut node = Node::restart(ME, NodeGeneration::new(1), Term::new(3), Some(LEADER), log);
    assert_eq!(terms(node.log()), [0, 1, 2], "on disk, it is not");

    // The leader sends what is missing behind the entry that this node reported before its crash.
    let missing = [LogEntry::Command, term(3)];
    node.handle_message(&append(3, 4, position(1, 2), &missing));
    save(&mut node, &mut disk);

    assert_eq!(node.commit_index(), LogIndex::new(4));
    // The leader has [0, 1, 1, 3]. Built with debug assertions, the crate ends here instead.
    assert_eq!(terms(node.log()), [0, 1, 2, 3]);
}

/// Does what the node wants done, as far as its disk is concerned.
fn save(node: &mut Node, disk: &mut LogEntries) {
    for action in node.actions_mut() {
        if let Action::AppendLogEntries(entries) = action {
            disk.truncate(entries.prev_position().index.get() as usize);
            disk.extend(entries.iter());
        }
    }
}

fn append(of_term: u64, commit: u64, behind: LogPosition, entries: &[LogEntry]) -> Message {
    Message::AppendEntriesCall {
        from: LEADER,
        term: Term::new(of_term),
        commit_index: LogIndex::new(commit),
        entries: LogEntries::from_iter(behind, entries.iter().cloned()),
    }
}

fn voters() -> ClusterConfig {
    let mut config = ClusterConfig::new();
    config.voters.extend([LEADER, ME, OTHER]);
    config
}

fn term(number: u64) -> LogEntry {
    LogEntry::Term(Term::new(number))
}

fn position(term: u64, index: u64) -> LogPosition {
    LogPosition {
        term: Term::new(term),
        index: LogIndex::new(index),
    }
}

/// The term of each entry of a log.
fn terms(log: &Log) -> Vec<u64> {
    let entries = log.entries().iter_with_positions();
    entries.map(|(position, _)| position.term.get()).collect()
}
