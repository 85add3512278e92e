//! Collections, strings, closures and traits of the standard library.

use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Instant;

const STEP: u64 = 9;

trait Rule {
    fn apply(&self, value: u64) -> u64;
}

struct Shift(u32);
struct Scale(u64);
struct Chain(Vec<Box<dyn Rule>>);

impl Rule for Shift {
    fn apply(&self, value: u64) -> u64 {
        value.rotate_left(self.0) ^ value >> 3
    }
}

impl Rule for Scale {
    fn apply(&self, value: u64) -> u64 {
        value.wrapping_mul(self.0) % 1_000_003
    }
}

impl Rule for Chain {
    fn apply(&self, value: u64) -> u64 {
        self.0.iter().fold(value, |each, rule| rule.apply(each))
    }
}

// early: #[inline(never)]
// early: #[no_mangle]
// early: pub extern "C" fn added_early(x: u64) -> u64 { format!("{x}").len() as u64 * x % 977 }

struct Random(u64);

impl Random {
    // split: #[inline(never)]
    fn next(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

#[inline(never)]
fn words(random: &mut Random, count: usize) -> Vec<String> {
    (0..count)
        .map(|_| (0..2 + random.next(4)).map(|_| (b'a' + random.next(7) as u8) as char).collect())
        .collect()
}

#[inline(never)]
fn ordered(words: &[String]) -> u64 {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_insert(0u64) += 1;
    }
    counts.iter().map(|(word, count)| word.len() as u64 * count).sum()
}

#[inline(never)]
fn hashed(words: &[String]) -> u64 {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for word in words {
        *counts.entry(word.to_uppercase()).or_default() += STEP;
    }
    counts.values().max().copied().unwrap_or(0)
}

#[inline(never)]
fn heap(random: &mut Random, count: u64) -> u64 {
    let mut heap: BinaryHeap<u64> = (0..count).map(|_| random.next(10_000)).collect();
    let mut sum = 0u64;
    while let Some(top) = heap.pop() {
        sum = sum.wrapping_mul(31).wrapping_add(top);
    }
    sum
}

#[inline(never)]
fn life(width: usize, rounds: usize) -> usize {
    let mut cells: Vec<Vec<bool>> = (0..width).map(|i| (0..width).map(|j| (i * j + i) % 3 == 0).collect()).collect();
    for _ in 0..rounds {
        cells = (0..width)
            .map(|i| {
                (0..width)
                    .map(|j| {
                        let around = (0..9)
                            .filter(|k| *k != 4)
                            .filter(|k| cells[(i + width + k / 3 - 1) % width][(j + width + k % 3 - 1) % width])
                            .count();
                        around == 3 || (around == 2 && cells[i][j])
                    })
                    .collect()
            })
            .collect();
    }
    cells.iter().flatten().filter(|each| **each).count()
}

#[inline(never)]
fn queue(random: &mut Random, count: u64) -> u64 {
    let mut waiting = VecDeque::new();
    let mut sum = 0;
    for i in 0..count {
        waiting.push_back(random.next(100) + i);
        if random.next(3) == 0 {
            sum += waiting.pop_front().unwrap_or(0);
        }
    }
    sum + waiting.len() as u64
}

#[inline(never)]
fn numbers(count: u64) -> u64 {
    let text: Vec<String> = (0..count).map(|i| format!("{:.3}", i as f64 / STEP as f64)).collect();
    text.iter().filter_map(|each| each.parse::<f64>().ok()).sum::<f64>() as u64
}

#[inline(never)]
fn sorted(words: &mut [String]) -> usize {
    words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    words.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|each| each.parse().ok()).unwrap_or(1.0);
    let (begin, mut random, mut sum) = (Instant::now(), Random(3), 0u64);
    let rule = Chain(vec![Box::new(Shift(5)), Box::new(Scale(STEP)), Box::new(Shift(11)), Box::new(Scale(77))]);
    loop {
        let mut text = words(&mut random, 1500);
        sum = sum.wrapping_add(ordered(&text) + hashed(&text) + sorted(&mut text) as u64);
        sum = sum.wrapping_add(heap(&mut random, 2000)).wrapping_add(queue(&mut random, 3000));
        sum = sum.wrapping_add(life(40, 8) as u64 + numbers(700));
        sum = (0..2000).fold(sum, |each, i| rule.apply(each ^ i));
        if begin.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    println!("{sum}");
}
// late: #[inline(never)]
// late: #[no_mangle]
// late: pub extern "C" fn added_late(x: u64) -> u64 { x * 31 % 977 }
