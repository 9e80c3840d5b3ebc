//! The first of several futures.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

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
pub async fn select<L, R>(left: L, right: R) -> Either<L::Output, R::Output>
where
    L: IntoFuture,
    R: IntoFuture,
{
    let mut left = pin!(left.into_future());
    let mut right = pin!(right.into_future());
    poll_fn(move |context| {
        if let Poll::Ready(done) = left.as_mut().poll(context) {
            return Poll::Ready(Either::Left(done));
        }
        right.as_mut().poll(context).map(Either::Right)
    })
    .await
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
pub async fn select_all<I>(futures: I) -> (<I::Item as IntoFuture>::Output, usize)
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let futures = futures.into_iter().map(IntoFuture::into_future);
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    assert!(!futures.is_empty(), "there is nothing to select from");
    poll_fn(move |context| {
        for (which, future) in futures.iter_mut().enumerate() {
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready((done, which));
            }
        }
        Poll::Pending
    })
    .await
}
