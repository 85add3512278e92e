//! Generics, closures, traits, panics, inlined iterators.
use std::collections::BTreeMap;
use std::fmt::Display;

mod shapes {
    pub trait Area {
        fn area(&self) -> u64;
        fn twice(&self) -> u64 {
            self.area() * 2
        }
    }
    pub struct Square(pub u64);
    pub struct Pair<T>(pub T, pub T);
    impl Area for Square {
        #[inline(never)]
        fn area(&self) -> u64 {
            self.0 * self.0
        }
    }
    impl<T: Area> Area for Pair<T> {
        fn area(&self) -> u64 {
            self.0.area() + self.1.area()
        }
    }
}
use shapes::*;

#[inline(never)]
fn count<T: Display>(items: &[T]) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for item in items.iter().map(|item| item.to_string()).filter(|text| !text.is_empty()) {
        *seen.entry(item).or_insert(0) += 1;
    }
    seen
}

#[inline(always)]
fn inner(x: u64) -> u64 {
    x.checked_mul(3).expect("small")
}

#[inline(never)]
fn middle(x: u64) -> u64 {
    inner(x) + (0..x).map(|y| inner(y)).sum::<u64>()
}

#[no_mangle]
pub extern "C" fn exported(x: u64) -> u64 {
    let local = |y: u64| {
        fn nested(z: u64) -> u64 {
            z ^ 5
        }
        nested(y) + x
    };
    local(middle(x))
}

fn main() {
    let n = std::env::args().count() as u64;
    let shapes: Vec<Box<dyn Area>> = vec![Box::new(Square(n)), Box::new(Pair(Square(n), Square(2)))];
    let total: u64 = shapes.iter().map(|s| s.twice()).sum();
    println!("{:?} {} {}", count(&[total, n]), exported(n), total);
}
