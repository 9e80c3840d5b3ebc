//! Random multithreaded programs as data.

/// One operation of a thread. Numbers choose among equal objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Load(usize),
    Store(usize),
    Add(usize),
    Swap(usize),
    Exchange(usize),

    Lock(usize),
    TryLock(usize),
    /// Drops the guard that the thread acquired last, of whatever kind.
    Unlock,
    IsPoisoned(usize),
    ClearPoison(usize),
    /// Locks, panics and catches that.
    PanicHolding(usize),

    /// These wait with the guard of the first mutex, if the thread holds it.
    Wait,
    WaitTimeout,
    /// Waits until the first mutex has been locked so often.
    WaitWhile(u32),
    NotifyOne,
    NotifyAll,

    Read,
    TryRead,
    Write,
    TryWrite,
    Downgrade,

    Meet,

    CallOnce,
    /// Panics inside and catches that.
    FailOnce,
    IsCompleted,
    Set,
    Get,
    GetOrInit,
    AwaitWord,
    Force,

    Send,
    TrySend,
    CloneSender,
    DropSender,
    Receive,
    TryReceive,
    ReceiveTimeout,
    DropReceiver,

    Park,
    ParkTimeout,
    /// Unparks the first thread.
    UnparkFirst,
    /// Unparks a thread that this one has spawned and not joined.
    Unpark(usize),

    Spawn(usize),
    Join(usize),
    IsFinished(usize),
    /// Uses a thread-local value whose destructor does an operation.
    Local,
    /// Panics at the end, with all guards that are held.
    Panic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capacity {
    Unbounded,
    Bounded(usize),
}

/// A program. The first thread begins, and spawns others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) threads: Vec<Vec<Act>>,
    pub(crate) capacity: Capacity,
    /// The thread that has the receiver; all others have senders.
    pub(crate) receiver: usize,
    /// The number of threads for which a barrier waits.
    pub(crate) parties: usize,
    /// Whether threads are spawned in a scope, and not joined explicitly.
    pub(crate) scoped: bool,
}

/// A difference between Dragnet and `std` that docs/threads.md names. Programs that could show it are not generated; each has
/// a test of its own in `gaps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// A writer that waits keeps readers of `std` out: `try_read` fails although nobody writes.
    TryReadBesideWriter,
    /// For the same reason a thread that blocks while it reads can keep a reader out, and so deadlock.
    BlocksWhileReading,
    /// A thread of `std` that blocks in a channel, or at the end of a scope, waits for the token of `park`. It can take one,
    /// or leave one behind.
    ParkBesideChannels,
    /// `wait_while` hides spurious wake-ups, but not that the mutex is locked for a moment after one.
    TryLockBesideSpuriousWakeup,
    /// While a thread stands still in the middle of a panic, others that panic are taken for each other.
    PanicsOverlap,
    /// A scope of `std` ends, and a thread is finished, before the destructors of thread-local values have run.
    LocalsOutliveTheirThread,
}

impl Gap {
    pub(crate) const ALL: [Self; 6] = [
        Self::TryReadBesideWriter,
        Self::BlocksWhileReading,
        Self::ParkBesideChannels,
        Self::TryLockBesideSpuriousWakeup,
        Self::PanicsOverlap,
        Self::LocalsOutliveTheirThread,
    ];

    /// Whether a program could show it.
    pub(crate) fn concerns(self, plan: &Plan) -> bool {
        let has = |is: fn(&Act) -> bool| plan.acts().any(is);
        match self {
            Self::TryReadBesideWriter => {
                has(|act| matches!(act, Act::TryRead)) && has(|act| matches!(act, Act::Write))
            }
            Self::BlocksWhileReading => {
                has(|act| matches!(act, Act::Write))
                    && plan.threads.iter().any(|acts| blocks_while_reading(acts))
            }
            Self::ParkBesideChannels => has(Act::parks) && (has(Act::is_of_channel) || plan.scoped),
            Self::TryLockBesideSpuriousWakeup => {
                has(|act| matches!(act, Act::WaitWhile(_))) && has(|act| *act == Act::TryLock(0))
            }
            Self::PanicsOverlap => {
                let panics = |acts: &&Vec<Act>| acts.iter().any(Act::panics);
                plan.threads.iter().filter(panics).count() > 1
            }
            Self::LocalsOutliveTheirThread => {
                has(|act| matches!(act, Act::Local))
                    && (plan.scoped || has(|act| matches!(act, Act::IsFinished(_))))
            }
        }
    }
}

fn blocks_while_reading(acts: &[Act]) -> bool {
    let mut after = (0..acts.len()).map(|end| (held_after(&acts[..end]), acts[end]));
    after.any(|(held, act)| held.contains(&Held::Reader) && act.blocks())
}

/// A guard that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Mutex(usize),
    Reader,
    Writer,
}

/// The guards that a thread holds if all that it tries succeeds.
fn held_after(acts: &[Act]) -> Vec<Held> {
    let mut held = Vec::new();
    for &act in acts {
        let of_rw_lock = |guard: &Held| !matches!(guard, Held::Mutex(_));
        match act {
            Act::Lock(lock) if held.contains(&Held::Mutex(lock)) => {}
            Act::Lock(lock) | Act::TryLock(lock) => held.push(Held::Mutex(lock)),
            Act::Read | Act::Write if held.iter().any(of_rw_lock) => {}
            Act::Read | Act::TryRead => held.push(Held::Reader),
            Act::Write | Act::TryWrite => held.push(Held::Writer),
            Act::Downgrade => {
                if let Some(last @ Held::Writer) = held.last_mut() {
                    *last = Held::Reader;
                }
            }
            Act::Unlock => drop(held.pop()),
            _ => {}
        }
    }
    held
}

impl Act {
    /// Whether a thread that has done something can do this, and it is not done in vain.
    fn makes_sense_after(self, acts: &[Act]) -> bool {
        let held = held_after(acts);
        let of_rw_lock = |guard: &Held| !matches!(guard, Held::Mutex(_));
        match self {
            Self::Unlock => !held.is_empty(),
            Self::Lock(lock) | Self::PanicHolding(lock) => !held.contains(&Held::Mutex(lock)),
            Self::Read | Self::Write => !held.iter().any(of_rw_lock),
            Self::Downgrade => held.last() == Some(&Held::Writer),
            Self::Wait | Self::WaitTimeout | Self::WaitWhile(_) => held.contains(&Held::Mutex(0)),
            act if act.is_of_channel() => {
                !acts.contains(&Self::DropReceiver) && !acts.contains(&Self::DropSender)
            }
            _ => true,
        }
    }

    fn blocks(&self) -> bool {
        use Act::{
            AwaitWord, CallOnce, FailOnce, Force, GetOrInit, Join, Lock, Meet, Panic, PanicHolding,
            Park, Read, Receive, Send, Set, Wait, WaitTimeout, WaitWhile, Write,
        };
        matches!(
            self,
            Lock(_) | PanicHolding(_) | Wait | WaitTimeout | WaitWhile(_) | Read | Write | Meet
        ) || matches!(
            self,
            CallOnce | FailOnce | Set | GetOrInit | AwaitWord | Force
        ) || matches!(self, Send | Receive | Park | Join(_) | Panic)
    }

    fn parks(&self) -> bool {
        use Act::{Park, ParkTimeout, Unpark, UnparkFirst};
        matches!(self, Park | ParkTimeout | Unpark(_) | UnparkFirst)
    }

    pub(crate) fn is_of_channel(&self) -> bool {
        use Act::{
            CloneSender, DropReceiver, DropSender, Receive, ReceiveTimeout, Send, TryReceive,
            TrySend,
        };
        matches!(self, Send | TrySend | CloneSender | DropSender)
            || matches!(self, Receive | TryReceive | ReceiveTimeout | DropReceiver)
    }

    fn panics(&self) -> bool {
        matches!(self, Act::PanicHolding(_) | Act::FailOnce | Act::Panic)
    }
}

/// The kinds of objects from which a program takes its operations.
#[derive(Clone, Copy, Debug)]
enum Palette {
    Atomics,
    Mutexes,
    Condvar,
    RwLock,
    Barrier,
    Once,
    OnceLock,
    Channel,
    Park,
    Local,
    Panics,
}

const PALETTES: [Palette; 11] = [
    Palette::Atomics,
    Palette::Mutexes,
    Palette::Condvar,
    Palette::RwLock,
    Palette::Barrier,
    Palette::Once,
    Palette::OnceLock,
    Palette::Channel,
    Palette::Park,
    Palette::Local,
    Palette::Panics,
];

/// Random numbers that are the same in every run: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }
}

impl Plan {
    /// The program of a number that is the first to show no [`Gap`].
    pub(crate) fn random(number: u64) -> Self {
        let mut draw = Draw::new(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
        loop {
            let plan = Self::any(&mut draw);
            if !Gap::ALL.iter().any(|gap| gap.concerns(&plan)) {
                return plan;
            }
        }
    }

    fn any(draw: &mut Draw) -> Self {
        let palettes: Vec<Palette> = (0..1 + draw.below(2))
            .map(|_| draw.one_of(&PALETTES))
            .collect();
        let count = 2 + usize::from(draw.below(3) > 0);
        let scoped = draw.below(4) == 0;
        let receiver = draw.below(count);
        let most = if count == 2 { 6 } else { 4 };
        let mut threads: Vec<Vec<Act>> = (0..count)
            .map(|id| {
                let mut acts = Vec::new();
                for _ in 0..2 + draw.below(most - 1) {
                    // Something that the thread can do where it is, if that is easily found.
                    let mut act = Act::Load(0);
                    for _ in 0..8 {
                        let palette = draw.one_of(&palettes);
                        act = palette.act(draw, id, receiver == id);
                        if act.makes_sense_after(&acts) {
                            break;
                        }
                    }
                    acts.push(act);
                }
                acts
            })
            .collect();
        let meets = |acts: &&Vec<Act>| acts.contains(&Act::Meet);
        let meeting = threads.iter().filter(meets).count();
        // Each has a parent that is older, and a scope has all of its threads.
        let panics = draw.below(count);
        for child in 1..count {
            let parent = if scoped { 0 } else { draw.below(child) };
            let acts = &mut threads[parent];
            let at = draw.below(acts.len() + 1).min(draw.below(acts.len() + 1));
            acts.insert(at, Act::Spawn(child));
            match draw.below(6) {
                0 if !scoped => {
                    let after = at + 1 + draw.below(acts.len() - at);
                    acts.insert(after, Act::Join(child));
                }
                1 => {
                    let after = at + 1 + draw.below(acts.len() - at);
                    acts.insert(after, Act::IsFinished(child));
                }
                2 if palettes.iter().any(|one| matches!(one, Palette::Park)) => {
                    let after = at + 1 + draw.below(acts.len() - at);
                    acts.insert(after, Act::Unpark(child));
                }
                _ => {}
            }
        }
        if palettes.iter().any(|one| matches!(one, Palette::Panics)) && panics > 0 && !scoped {
            threads[panics].push(Act::Panic);
        }
        let capacity = match draw.below(4) {
            0 => Capacity::Unbounded,
            1 => Capacity::Bounded(0),
            room => Capacity::Bounded(room - 1),
        };
        Self {
            threads,
            capacity,
            receiver,
            parties: match draw.below(4) {
                0 => 1 + draw.below(count),
                _ => meeting.max(1),
            },
            scoped,
        }
    }

    pub(crate) fn acts(&self) -> impl Iterator<Item = &Act> {
        self.threads.iter().flatten()
    }

    pub(crate) fn has_channel(&self) -> bool {
        self.acts().any(Act::is_of_channel)
    }

    /// Each `wait` of `std` may wake up spuriously, and returns once.
    pub(crate) fn spurious_wakeups(&self) -> u32 {
        let waits = |act: &&Act| matches!(act, Act::Wait | Act::WaitTimeout);
        self.acts().filter(waits).count() as u32
    }
}

impl Palette {
    fn act(self, draw: &mut Draw, id: usize, receives: bool) -> Act {
        let which = draw.below(2);
        match self {
            Self::Atomics => draw.one_of(&[
                Act::Load(which),
                Act::Store(which),
                Act::Add(which),
                Act::Swap(which),
                Act::Exchange(which),
            ]),
            Self::Mutexes => draw.one_of(&[
                Act::Lock(which),
                Act::Lock(which),
                Act::TryLock(which),
                Act::Unlock,
                Act::Add(which),
            ]),
            Self::Condvar => draw.one_of(&[
                Act::Lock(0),
                Act::Lock(0),
                Act::Unlock,
                Act::Wait,
                Act::WaitTimeout,
                Act::WaitWhile(1 + which as u32),
                Act::NotifyOne,
                Act::NotifyAll,
                Act::NotifyAll,
                Act::Load(0),
            ]),
            Self::RwLock => draw.one_of(&[
                Act::Read,
                Act::Read,
                Act::TryRead,
                Act::Write,
                Act::TryWrite,
                Act::Downgrade,
                Act::Unlock,
                Act::Unlock,
                Act::Add(which),
            ]),
            Self::Barrier => draw.one_of(&[Act::Meet, Act::Load(0), Act::Add(0)]),
            Self::Once => {
                draw.one_of(&[Act::CallOnce, Act::FailOnce, Act::IsCompleted, Act::Add(0)])
            }
            Self::OnceLock => draw.one_of(&[
                Act::Set,
                Act::Get,
                Act::GetOrInit,
                Act::AwaitWord,
                Act::Force,
                Act::Add(0),
            ]),
            Self::Channel if receives => draw.one_of(&[
                Act::Receive,
                Act::Receive,
                Act::TryReceive,
                Act::ReceiveTimeout,
                Act::DropReceiver,
                Act::Load(0),
            ]),
            Self::Channel => draw.one_of(&[
                Act::Send,
                Act::Send,
                Act::TrySend,
                Act::CloneSender,
                Act::DropSender,
                Act::Add(0),
            ]),
            Self::Park => draw.one_of(&match id {
                0 => [Act::Park, Act::ParkTimeout, Act::Add(0), Act::Load(0)],
                _ => [
                    Act::UnparkFirst,
                    Act::UnparkFirst,
                    Act::ParkTimeout,
                    Act::Add(0),
                ],
            }),
            // The first thread of a real run is used again.
            Self::Local if id > 0 => draw.one_of(&[Act::Local, Act::Load(1)]),
            Self::Local => Act::Load(1),
            Self::Panics => draw.one_of(&[
                Act::Lock(which),
                Act::PanicHolding(which),
                Act::IsPoisoned(which),
                Act::ClearPoison(which),
            ]),
        }
    }
}
