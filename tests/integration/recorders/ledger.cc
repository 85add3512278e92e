// A program that is busy for about a second, in functions of its own and of the library of mathematics.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace {
std::uint64_t state = 1;

__attribute__((noinline)) double balance(double start, int years) {
  double sum = start;
  for (int year = 0; year < years; ++year) sum = sum * 1.0001 + std::sqrt(sum + year);
  return sum;
}

__attribute__((noinline)) std::uint64_t shuffle(int rounds) {
  for (int round = 0; round < rounds; ++round) state = state * 6364136223846793005u + 1442695040888963407u;
  return state;
}

__attribute__((noinline)) double post(int entries) {
  double total = 0;
  for (int entry = 0; entry < entries; ++entry) total += balance(double(shuffle(40) >> 40), 60);
  return total;
}
}  // namespace

int main() {
  double total = 0;
  for (const std::clock_t end = std::clock() + CLOCKS_PER_SEC; std::clock() < end;) total += post(2000);
  std::printf("%g\n", total);
}
