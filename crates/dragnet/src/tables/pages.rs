//! Large pages: random access to many megabytes otherwise costs more for translating addresses than for the memory
//! itself.

use std::ptr::NonNull;

pub(super) const LARGE_PAGE: usize = 2 << 20;

/// Asks for large pages under memory that is aligned for them and large enough. A wish, not a need.
pub(super) fn advise_large(memory: NonNull<u8>, size: usize) {
    #[cfg(target_os = "linux")]
    if size >= LARGE_PAGE && memory.addr().get().is_multiple_of(LARGE_PAGE) {
        // SAFETY: the range is one whole allocation that nobody uses yet, and the advice changes no content.
        unsafe { libc::madvise(memory.as_ptr().cast(), size, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (memory, size);
}
