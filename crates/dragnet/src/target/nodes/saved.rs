//! States of a cluster, written and read.

use std::collections::HashSet;
use std::sync::Mutex;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::interned::Interned;
use super::local::{Envelope, Input, Life, Local};
use super::row::Row;
use super::{Cluster, Node, NodeId, Nodes, Timer};
use crate::trace::{SavedMessage, SavedNode, SavedState, SavedTimer};

/// How the states and messages of a kind of node are written and read.
pub(super) struct Codec<N: Node> {
    write_state: fn(&N::State) -> serde_json::Result<Value>,
    read_state: fn(Value) -> serde_json::Result<N::State>,
    write_msg: fn(&N::Msg) -> serde_json::Result<Value>,
    read_msg: fn(Value) -> serde_json::Result<N::Msg>,
}

/// Where an exploration starts instead of at the beginning.
pub(super) struct Departure<N: Node> {
    pub(super) locals: Vec<Local<N::State>>,
    pub(super) in_flight: Vec<Envelope<N::Msg>>,
}

impl<N: Node> Codec<N>
where
    N::State: Serialize + DeserializeOwned,
    N::Msg: Serialize + DeserializeOwned,
{
    pub(super) fn new() -> Self {
        Self {
            write_state: |state| serde_json::to_value(state),
            read_state: serde_json::from_value,
            write_msg: |msg| serde_json::to_value(msg),
            read_msg: serde_json::from_value,
        }
    }
}

impl<N: Node> Clone for Codec<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N: Node> Copy for Codec<N> {}

impl<N: Node> Cluster<N> {
    /// Whether states can be written.
    pub(crate) fn can_be_saved(&self) -> bool {
        self.codec.is_some()
    }

    /// Has every exploration start in a saved state, or says why it cannot.
    pub(crate) fn depart_from(&mut self, saved: &SavedState) -> Result<(), String> {
        let codec = self.codec.ok_or(
            "its states cannot be read; say `.serializable()` of its cluster, whose states and messages then \
             implement serde's traits",
        )?;
        let nodes = self.nodes.len();
        if saved.nodes.len() != nodes {
            return Err(format!(
                "it has {nodes} nodes, and the state has {}",
                saved.nodes.len()
            ));
        }
        let locals = saved.nodes.iter().enumerate().map(|(id, node)| {
            let read = |state: &Value| {
                let state = (codec.read_state)(state.clone())
                    .map_err(|error| format!("node {id} has another kind of state ({error})"))?;
                if self.nodes[id].recognises(&state) {
                    Ok(state)
                } else {
                    Err(format!("node {id} is another kind of node"))
                }
            };
            let life = match (&node.state, &node.durable) {
                (Some(state), None) => Life::Up(read(state)?),
                (None, durable) => Life::Down(durable.as_ref().map(read).transpose()?),
                (Some(_), Some(_)) => {
                    return Err(format!("node {id} is both up and down"));
                }
            };
            let calls = self.workloads[id].calls.len();
            if node.called as usize > calls || node.answered > node.called {
                return Err(format!(
                    "node {id} has answered {} of {} calls, and its workload has {calls}",
                    node.answered, node.called
                ));
            }
            let mut timers: Vec<Timer> = node.timers.iter().map(timer).collect();
            timers.sort_unstable();
            timers.dedup();
            let ran_out = node.ran_out.iter();
            let mut ran_out: Vec<(Timer, u32)> = ran_out.map(|(t, n)| (timer(t), *n)).collect();
            ran_out.sort_unstable();
            Ok(Local {
                life,
                timers,
                ran_out,
                called: node.called,
                answered: node.answered,
            })
        });
        let locals = locals.collect::<Result<_, String>>()?;
        let in_flight = saved.in_flight.iter().map(|message| {
            let &SavedMessage { from, to, ref msg } = message;
            if from.max(to) >= nodes {
                return Err(format!("a message goes from node {from} to node {to}"));
            }
            let msg = (codec.read_msg)(msg.clone())
                .map_err(|error| format!("{msg} is no message of its nodes ({error})"))?;
            Ok(Envelope {
                from: NodeId(from),
                to: NodeId(to),
                msg,
            })
        });
        let in_flight = in_flight.collect::<Result<_, String>>()?;
        self.departure = Some(Departure { locals, in_flight });
        Ok(())
    }
}

impl<N: Node> Interned<N> {
    /// A state as a file has it, if states can be written.
    pub(super) fn save_row(&self, nodes: &Nodes, system: &str, row: &Row) -> Option<SavedState> {
        let codec = self.codec?;
        let saved = (0..nodes.len()).map(|node| {
            let local = self.local(nodes.local_in(row, node));
            let (state, durable) = match &local.life {
                Life::Up(state) => (Some((codec.write_state)(state).ok()?), None),
                Life::Down(Some(durable)) => (None, Some((codec.write_state)(durable).ok()?)),
                Life::Down(None) => (None, None),
            };
            let ran_out = local.ran_out.iter();
            Some(SavedNode {
                name: self.names[node].clone(),
                state,
                durable,
                timers: local.timers.iter().copied().map(saved_timer).collect(),
                ran_out: ran_out.map(|&(t, n)| (saved_timer(t), n)).collect(),
                called: local.called,
                answered: local.answered,
            })
        });
        let saved = saved.collect::<Option<_>>()?;
        let envelopes = (0..nodes.len()).flat_map(|node| nodes.in_flight_to(row, node));
        let in_flight = envelopes.map(|&envelope| match self.input(envelope) {
            Input::Deliver(envelope) => Some(SavedMessage {
                from: envelope.from.0,
                to: envelope.to.0,
                msg: (codec.write_msg)(&envelope.msg).ok()?,
            }),
            _ => unreachable!("only messages are in flight"),
        });
        let in_flight = in_flight.collect::<Option<_>>()?;
        Some(SavedState::new(system.to_owned(), saved, in_flight))
    }
}

fn saved_timer(timer: Timer) -> SavedTimer {
    let name = timer.name().to_owned();
    match timer.number() {
        None => SavedTimer::Named(name),
        Some(number) => SavedTimer::Numbered(name, number),
    }
}

fn timer(saved: &SavedTimer) -> Timer {
    match saved {
        SavedTimer::Named(name) => Timer::new(lasting(name)),
        SavedTimer::Numbered(name, number) => Timer::numbered(lasting(name), *number),
    }
}

/// The same text for ever: the names of timers are few, and part of the program.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap();
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return known;
    }
    let lasting: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(lasting);
    lasting
}
