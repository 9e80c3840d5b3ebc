//! All of several futures, polled by one task.

use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for all of several futures, which this task polls in turn, and gives what they have come to.
///
/// ```
/// use dragnet::future::{block_on, join};
///
/// let all = block_on(async { join!(async { 1 }, async { "two" }, std::future::ready(3.0)) });
/// assert_eq!(all, (1, "two", 3.0));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __join {
    // Each turn of the macro has a `future` and a `done` of its own.
    (@pinned [$($pinned:ident $ended:ident)*] $next:expr, $($rest:expr,)*) => {{
        let mut future = ::std::pin::pin!(Some(::std::future::IntoFuture::into_future($next)));
        let mut done = None;
        $crate::__join!(@pinned [$($pinned $ended)* future done] $($rest,)*)
    }};
    (@pinned [$($pinned:ident $ended:ident)+]) => {{
        ::std::future::poll_fn(|context| {
            $(
                if let Some(future) = $pinned.as_mut().as_pin_mut()
                    && let ::std::task::Poll::Ready(done) = ::std::future::Future::poll(future, context)
                {
                    $pinned.set(None);
                    $ended = Some(done);
                }
            )+
            match true $(&& $ended.is_some())+ {
                true => ::std::task::Poll::Ready(()),
                false => ::std::task::Poll::Pending,
            }
        })
        .await;
        ($($ended.expect("all are ready"),)+)
    }};
    ($($future:expr),+ $(,)?) => {
        $crate::__join!(@pinned [] $($future,)+)
    };
}

/// Waits for both of two futures, which one task polls in turn.
///
/// ```
/// use dragnet::future::{block_on, join};
///
/// assert_eq!(block_on(join(async { 1 }, async { "two" })), (1, "two"));
/// ```
pub async fn join<L, R>(left: L, right: R) -> (L::Output, R::Output)
where
    L: IntoFuture,
    R: IntoFuture,
{
    crate::__join!(left, right)
}

/// Waits for all futures, which one task polls in turn; what they have come to is in their order.
///
/// ```
/// use dragnet::future::{block_on, join_all, spawn};
///
/// let tasks = (0..3).map(|number| spawn(async move { number * number }));
/// let squares = block_on(join_all(tasks));
/// assert_eq!(squares.into_iter().flatten().collect::<Vec<_>>(), [0, 1, 4]);
/// ```
pub fn join_all<I>(futures: I) -> impl Future<Output = Vec<<I::Item as IntoFuture>::Output>>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let futures = futures.into_iter().map(IntoFuture::into_future);
    JoinAll {
        parts: futures
            .map(|future| Part::Waits(Box::pin(future)))
            .collect(),
    }
}

// A type of its own, so that its futures hear where it is awaited, which an `async` block does not tell.
struct JoinAll<F: Future> {
    parts: Vec<Part<F>>,
}

enum Part<F: Future> {
    Waits(Pin<Box<F>>),
    Done(F::Output),
}

// What futures come to is never pinned.
impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut all_done = true;
        for part in &mut self.parts {
            if let Part::Waits(future) = part {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *part = Part::Done(done),
                    Poll::Pending => all_done = false,
                }
            }
        }
        if !all_done {
            return Poll::Pending;
        }
        let parts = std::mem::take(&mut self.parts).into_iter();
        let ended = parts.filter_map(|part| match part {
            Part::Done(done) => Some(done),
            Part::Waits(_) => None,
        });
        Poll::Ready(ended.collect())
    }
}
