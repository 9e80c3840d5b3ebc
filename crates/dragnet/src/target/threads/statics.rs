//! Statics: every execution has a copy of its own, as the program was loaded with it.

use std::alloc::{self, Layout};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

/// A static as one execution sees it.
pub(super) struct Copy {
    memory: *mut u8,
    layout: Layout,
}

impl Copy {
    /// A copy of a static that nobody has used.
    ///
    /// What a constant was made of owns nothing, so its bytes are all of it.
    pub(super) fn of<T: ?Sized>(data: *mut T) -> Self {
        // SAFETY: `data` is a static, which lives for ever and is never written to while executions have copies of it.
        let layout = unsafe { Layout::for_value(&*data) };
        if layout.size() == 0 {
            return Self {
                memory: data.cast(),
                layout,
            };
        }
        // SAFETY: the size is not zero; both places have the size of the value and do not overlap.
        let memory = unsafe {
            let memory = alloc::alloc(layout);
            if memory.is_null() {
                alloc::handle_alloc_error(layout);
            }
            ptr::copy_nonoverlapping(data.cast::<u8>(), memory, layout.size());
            memory
        };
        Self { memory, layout }
    }

    /// Where the copy of `data` is.
    pub(super) fn place<T: ?Sized>(&self, data: *mut T) -> *mut T {
        let distance = (self.memory as isize).wrapping_sub(data.cast::<u8>() as isize);
        data.wrapping_byte_offset(distance)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: it was allocated with this layout. What the value owned by now is not dropped: a program does not
            // drop its statics either.
            unsafe { alloc::dealloc(self.memory, self.layout) };
        }
    }
}

/// Whether an address is that of a static.
pub(super) fn holds(address: usize) -> bool {
    static RANGES: OnceLock<Vec<Range<usize>>> = OnceLock::new();
    let ranges = RANGES.get_or_init(image);
    ranges.iter().any(|range| range.contains(&address))
}

/// Where the program and its libraries were loaded.
#[cfg(target_os = "linux")]
fn image() -> Vec<Range<usize>> {
    use std::ffi::{c_int, c_void};

    extern "C" fn take(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        ranges: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader hands out valid headers, and `ranges` is the vector below.
        unsafe {
            let (info, ranges) = (&*info, &mut *ranges.cast::<Vec<Range<usize>>>());
            for at in 0..usize::from(info.dlpi_phnum) {
                let header = &*info.dlpi_phdr.add(at);
                if header.p_type == libc::PT_LOAD {
                    let start = (info.dlpi_addr + header.p_vaddr) as usize;
                    ranges.push(start..start + header.p_memsz as usize);
                }
            }
        }
        0
    }

    let mut ranges: Vec<Range<usize>> = Vec::new();
    // SAFETY: the callback gets the vector that it expects.
    unsafe { libc::dl_iterate_phdr(Some(take), ptr::from_mut(&mut ranges).cast()) };
    ranges
}

/// Nothing is known of where the program was loaded.
#[cfg(not(target_os = "linux"))]
fn image() -> Vec<Range<usize>> {
    Vec::new()
}
