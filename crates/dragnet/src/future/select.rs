//! The first of several futures.

use std::pin::Pin;
use std::task::{Context, Poll};

/// What one of two has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Either<L, R> {
    /// The first of them.
    Left(L),
    /// The second.
    Right(R),
}

/// Waits for one of two futures; if both are ready, it is the first. The other one is dropped, unless only a reference to
/// it was given.
///
/// ```
/// use dragnet::future::{Either, block_on, select};
/// use std::future::{pending, ready};
/// use std::pin::pin;
///
/// block_on(async {
///     let mut later = pin!(async { "later" });
///     assert_eq!(select(ready(1), later.as_mut()).await, Either::Left(1));
///     assert_eq!(select(pending::<u32>(), later).await, Either::Right("later"));
/// });
/// ```
pub fn select<L, R>(left: L, right: R) -> impl Future<Output = Either<L::Output, R::Output>>
where
    L: IntoFuture,
    R: IntoFuture,
{
    Select {
        left: Box::pin(left.into_future()),
        right: Box::pin(right.into_future()),
    }
}

// A type of its own, as those below, so that its futures hear where it is awaited, which an `async` block does not tell.
struct Select<L, R> {
    left: Pin<Box<L>>,
    right: Pin<Box<R>>,
}

impl<L: Future, R: Future> Future for Select<L, R> {
    type Output = Either<L::Output, R::Output>;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(done) = self.left.as_mut().poll(context) {
            return Poll::Ready(Either::Left(done));
        }
        self.right.as_mut().poll(context).map(Either::Right)
    }
}

/// Waits for one of several futures, the first in order if more are ready, and says which one it was. The others are
/// dropped, unless only references to them were given.
///
/// ```
/// use dragnet::future::{block_on, select_all, spawn};
///
/// let mut tasks = [spawn(async { 1 }), spawn(async { 1 })];
/// block_on(async {
///     let (first, which) = select_all(&mut tasks).await;
///     let (second, _) = select_all([&mut tasks[1 - which]]).await;
///     assert_eq!(first.unwrap() + second.unwrap(), 2);
/// });
/// ```
///
/// # Panics
/// When there are none.
pub fn select_all<I>(futures: I) -> impl Future<Output = (<I::Item as IntoFuture>::Output, usize)>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let futures = futures.into_iter().map(IntoFuture::into_future);
    let futures: Vec<_> = futures.map(Box::pin).collect();
    assert!(!futures.is_empty(), "there is nothing to select from");
    SelectAll { futures }
}

struct SelectAll<F> {
    futures: Vec<Pin<Box<F>>>,
}

impl<F: Future> Future for SelectAll<F> {
    type Output = (F::Output, usize);

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for (which, future) in self.futures.iter_mut().enumerate() {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready((done, which));
            }
        }
        Poll::Pending
    }
}
