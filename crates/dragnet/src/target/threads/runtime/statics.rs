//! Statics: every execution has a copy of its own, as the program was loaded with it.

use std::alloc::{self, Layout};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A static as one execution sees it.
pub(in super::super) struct Copy {
    memory: *mut u8,
    layout: Layout,
}

impl Copy {
    /// A copy of a static that nobody has used.
    ///
    /// What a constant was made of owns nothing, so its bytes are all of it.
    pub(in super::super) fn of<T: ?Sized>(data: *mut T) -> Self {
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
    pub(in super::super) fn place<T: ?Sized>(&self, data: *mut T) -> *mut T {
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

/// A part of a file that the program was loaded from.
struct Segment {
    /// Where it was loaded.
    range: Range<usize>,
    file: PathBuf,
    offset: u64,
    /// How much of it comes from the file.
    from_file: usize,
}

/// In the order of their places.
fn segments() -> &'static [Segment] {
    static SEGMENTS: OnceLock<Vec<Segment>> = OnceLock::new();
    SEGMENTS.get_or_init(image)
}

/// Whether an address is that of a static.
pub(in super::super) fn holds(address: usize) -> bool {
    segment_with(address).is_some()
}

fn segment_with(address: usize) -> Option<&'static Segment> {
    let segments = segments();
    let next = segments.partition_point(|segment| segment.range.end <= address);
    segments
        .get(next)
        .filter(|segment| segment.range.contains(&address))
}

/// Whether the program was loaded with a number at an address.
pub(in super::super) fn was_loaded_with(address: usize, number: u64) -> bool {
    static LOADED: Mutex<BTreeMap<usize, bool>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    *loaded.entry(address).or_insert_with(|| {
        let segment = segment_with(address);
        // Where the file cannot be read any more nothing speaks against it.
        segment.is_none_or(|segment| {
            segment
                .read(address)
                .is_none_or(|read| read == Some(number))
        })
    })
}

impl Segment {
    /// The number at an address as it is in the file, if it is there: what is known is nothing if the file cannot be read.
    fn read(&self, address: usize) -> Option<Option<u64>> {
        let distance = address - self.range.start;
        if distance + size_of::<u64>() > self.from_file {
            return Some(None);
        }
        let mut bytes = [0; size_of::<u64>()];
        let file = File::open(&self.file).ok()?;
        file.read_exact_at(&mut bytes, self.offset + distance as u64)
            .ok()?;
        Some(Some(u64::from_ne_bytes(bytes)))
    }
}

/// Where the program and its libraries were loaded.
#[cfg(target_os = "linux")]
fn image() -> Vec<Segment> {
    use std::ffi::{CStr, OsStr, c_int, c_void};
    use std::os::unix::ffi::OsStrExt;

    extern "C" fn take(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        segments: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader hands out valid headers, and `segments` is the vector below.
        unsafe {
            let (info, segments) = (&*info, &mut *segments.cast::<Vec<Segment>>());
            // The program itself has no name here.
            let file = match CStr::from_ptr(info.dlpi_name).to_bytes() {
                [] => PathBuf::from("/proc/self/exe"),
                name => PathBuf::from(OsStr::from_bytes(name)),
            };
            for at in 0..usize::from(info.dlpi_phnum) {
                let header = &*info.dlpi_phdr.add(at);
                if header.p_type == libc::PT_LOAD {
                    let start = (info.dlpi_addr + header.p_vaddr) as usize;
                    segments.push(Segment {
                        range: start..start + header.p_memsz as usize,
                        file: file.clone(),
                        offset: header.p_offset,
                        from_file: header.p_filesz as usize,
                    });
                }
            }
        }
        0
    }

    let mut segments: Vec<Segment> = Vec::new();
    // SAFETY: the callback gets the vector that it expects.
    unsafe { libc::dl_iterate_phdr(Some(take), ptr::from_mut(&mut segments).cast()) };
    segments.sort_by_key(|segment| segment.range.start);
    segments
}

/// Nothing is known of where the program was loaded.
#[cfg(not(target_os = "linux"))]
fn image() -> Vec<Segment> {
    Vec::new()
}
