//! Prints the frames at hexadecimal addresses as `addr2line -a -f -i` does, by gimli's addr2line.
//!
//! With cargo: the crates of Cargo.toml. With `rustc --cfg newest`: those that the compiler carries for its own
//! backtraces, which inflate no sections themselves.
#![cfg_attr(newest, feature(rustc_private))]

#[cfg(newest)]
extern crate addr2line;
#[cfg(newest)]
extern crate gimli;
#[cfg(newest)]
extern crate miniz_oxide;
#[cfg(newest)]
extern crate object;

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};
use std::io::{stdin, stdout, BufRead, BufWriter, Write};

type Bytes = EndianSlice<'static, LittleEndian>;

/// The inflated bytes of a section, empty if there is none.
#[cfg(newest)]
fn section(file: &object::read::elf::ElfFile64<'static, object::LittleEndian>, name: &str) -> &'static [u8] {
    use miniz_oxide::inflate::core::{decompress, inflate_flags as flags, DecompressorOxide};
    let Some(section) = file.section_by_name(name) else { return &[] };
    let stored = section.data().unwrap();
    match section.flags() {
        object::SectionFlags::Elf { sh_flags } if sh_flags & 0x800 != 0 => {
            let mut bytes = vec![0; u64::from_le_bytes(stored[8..16].try_into().unwrap()) as usize];
            let how = flags::TINFL_FLAG_PARSE_ZLIB_HEADER | flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
            decompress(&mut Box::<DecompressorOxide>::default(), &stored[24..], &mut bytes, 0, how);
            bytes.leak()
        }
        _ => stored,
    }
}

#[cfg(not(newest))]
fn section(file: &object::read::elf::ElfFile64<'static, object::LittleEndian>, name: &str) -> &'static [u8] {
    match file.section_by_name(name).map(|section| section.uncompressed_data().unwrap()) {
        Some(std::borrow::Cow::Borrowed(bytes)) => bytes,
        Some(std::borrow::Cow::Owned(bytes)) => bytes.leak(),
        None => &[],
    }
}

/// The file in memory: mapped, since it may be larger than what is asked of it.
fn mapped(path: &str) -> &'static [u8] {
    use std::os::fd::AsRawFd;
    extern "C" {
        fn mmap(at: *mut u8, size: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    }
    let file = std::fs::File::open(path).unwrap();
    let size = file.metadata().unwrap().len() as usize;
    let at = unsafe { mmap(std::ptr::null_mut(), size, 1, 2, file.as_raw_fd(), 0) };
    assert!(at as isize != -1, "{path} cannot be mapped");
    unsafe { std::slice::from_raw_parts(at, size) }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: gimli BINARY < ADDRESSES");
    let file = object::read::elf::ElfFile64::parse(mapped(&path)).unwrap();
    let load = |id: SectionId| Ok::<Bytes, gimli::Error>(EndianSlice::new(section(&file, id.name()), LittleEndian));
    let context = addr2line::Context::from_dwarf(Dwarf::load(load).unwrap()).unwrap();
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lock().lines() {
        let address = u64::from_str_radix(line.unwrap().trim().trim_start_matches("0x"), 16).unwrap();
        writeln!(out, "{address:#018x}").unwrap();
        let frames = context.find_frames(address);
        #[cfg(newest)]
        let frames = frames.skip_all_loads();
        let mut frames = frames.unwrap();
        let mut any = false;
        while let Some(frame) = frames.next().unwrap() {
            any = true;
            let name = frame.function.as_ref().and_then(|each| each.raw_name().ok());
            let place = frame.location.as_ref();
            let file = place.and_then(|each| each.file).unwrap_or("??");
            let number = place.and_then(|each| each.line).unwrap_or(0);
            writeln!(out, "{}\n{file}:{number}", name.as_deref().unwrap_or("??")).unwrap();
        }
        if !any {
            writeln!(out, "??\n??:0").unwrap();
        }
    }
}
