//! A program that is busy for about a second.
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn parse(number: u64) -> Vec<u64> {
    number.to_string().bytes().map(|digit| u64::from(digit - b'0')).collect()
}

#[inline(never)]
fn answer(seen: &mut HashMap<u64, u64>, request: u64) -> u64 {
    let sum = parse(request.wrapping_mul(6364136223846793005)).iter().sum();
    *seen.entry(sum).and_modify(|count| *count += 1).or_insert(1)
}

fn main() {
    let (mut seen, mut total, start) = (HashMap::new(), 0, Instant::now());
    while start.elapsed() < Duration::from_secs(1) {
        total += (0..1000).map(|request| answer(&mut seen, request + total)).sum::<u64>() % 7;
    }
    println!("{total}");
}
