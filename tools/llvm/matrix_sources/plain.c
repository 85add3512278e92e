/* C: clones, aliases, weak functions, cold parts, nested functions, functions that do not return. */
#define NOINLINE __attribute__((noinline))

volatile int sink;
int seed = 3;

int shapes(int);
int other(int);
int assembled(int);

static NOINLINE int constant(int x, int factor) {
  int total = 0;
  for (int i = 0; i < x; i++)
    total += i * factor + sink;
  return total;
}

static NOINLINE int partial(int *x, int unused) {
  if (!*x)
    return 0;
  sink = *x;
  for (int i = 0; i < *x; i++)
    sink += constant(i, 3);
  return sink;
}

int original(int x) { return x + constant(x, 3); }
int alias(int) __attribute__((alias("original")));
__attribute__((weak)) int weakling(int x) { return x - 1; }
int weak_alias(int) __attribute__((weak, alias("original")));

__attribute__((noreturn, cold)) void stop(int code) {
  for (;;)
    sink = code;
}

static inline int checked(int x) {
  if (__builtin_expect(x == 77, 0))
    stop(x);
  return x + 1;
}

NOINLINE int hot(int x) {
  int y = checked(x);
  if (__builtin_expect(y > 500, 0)) {
    sink = y;
    return original(y) + checked(y + 1);
  }
  return checked(y + 2);
}

#if !defined(__clang__) && defined(NESTED)
NOINLINE int enclosing(int x) {
  NOINLINE int nested(int y) { return x * y + sink; }
  int deeper(int y) {
    NOINLINE int deepest(int z) { return z + nested(y) + x; }
    return deepest(y) + 1;
  }
  return nested(x) + deeper(x + 1);
}
#else
NOINLINE int enclosing(int x) { return x; }
#endif

#ifdef IFUNC
static int fast(int x) { return x + 10; }
static int slow(int x) { return x + 20; }
static int (*pick(void))(int) { return seed ? fast : slow; }
int chosen(int) __attribute__((ifunc("pick")));
#else
int chosen(int x) { return x; }
#endif

__attribute__((section(".text.special"))) int special(int x) { return original(x) * 2; }

NOINLINE void unreachable(void) { __builtin_unreachable(); }

int discarded_c(int x) { return hot(x) + partial(&x, 0); }

static int run(int x) {
  int total = hot(x) + partial(&x, 5) + partial(&seed, 6) + constant(x, 3) + alias(x) + weakling(x) + weak_alias(x);
  switch (x) {
  case 1: total += special(x); break;
  case 2: total += chosen(x); break;
  case 3: total += shapes(x); break;
  case 4: total += other(x); break;
  case 5: total += enclosing(x); break;
  case 6: total += assembled(x); break;
  case 7: unreachable(); break;
  }
  return total;
}

#ifdef HOSTED
int main(int argc, char **argv) { return run(argc); }
#else
void _start(void) {
  sink = run(seed);
  stop(0);
}
#endif
