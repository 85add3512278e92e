/* A machine of bytecode: a large switch, calls through a table, recursion. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEP = 7, CELLS = 4096 };

typedef struct {
    int64_t stack[256], cells[CELLS];
    int top;
    uint64_t seed;
} Machine;

// early: __attribute__((noinline, used)) int64_t added_early(int64_t x) { return x * x % 977 + (x >> 3); }

static uint64_t next(Machine *m) {
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    return m->seed ^= m->seed << 17;
}

// split: __attribute__((noinline))
static void push(Machine *m, int64_t value) { m->stack[m->top++ & 255] = value; }

static int64_t pop(Machine *m) { return m->stack[--m->top & 255]; }

__attribute__((noinline)) static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

__attribute__((noinline)) static int64_t fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__attribute__((noinline)) static int64_t checksum(const int64_t *cells, int count) {
    uint64_t a = 1, b = 0;
    for (int i = 0; i < count; i++) {
        a = (a + (uint64_t)cells[i]) % 65521;
        b = (b + a) % 65521;
    }
    return (int64_t)(b << 16 | a);
}

static int64_t twice(int64_t x) { return x * 2 + 1; }
static int64_t halve(int64_t x) { return x / 2 - x / 9; }
static int64_t mix(int64_t x) { return (int64_t)((uint64_t)x * 0x9E3779B97F4A7C15u >> 11) + x; }
static int64_t bits(int64_t x) {
    int n = 0;
    for (uint64_t u = (uint64_t)x; u; u &= u - 1) n++;
    return n;
}
static int64_t (*const TABLE[])(int64_t) = {twice, halve, mix, bits};

__attribute__((noinline)) static void run(Machine *m, const uint8_t *code, int length) {
    for (int i = 0; i < length; i++) {
        int64_t a, b;
        switch (code[i] & 15) {
        case 0: push(m, (int64_t)(next(m) >> 40)); break;
        case 1: a = pop(m), b = pop(m), push(m, a + b); break;
        case 2: a = pop(m), b = pop(m), push(m, a - b); break;
        case 3: a = pop(m), b = pop(m), push(m, a * b); break;
        case 4: a = pop(m), b = pop(m), push(m, b ? a / (b | 1) : a); break;
        case 5: a = pop(m), push(m, a ^ (a << STEP)); break;
        case 6: a = pop(m), push(m, TABLE[a & 3](a)); break;
        case 7: a = pop(m), m->cells[(uint64_t)a % CELLS] = a + STEP; break;
        case 8: a = pop(m), push(m, m->cells[(uint64_t)a % CELLS]); break;
        case 9: a = pop(m), b = pop(m), push(m, gcd(a, b)); break;
        case 10: push(m, fibonacci(code[i] >> 5)); break;
        case 11: push(m, code[i] * STEP); break;
        case 12: a = pop(m), push(m, a < 0 ? -a : a); break;
        case 13: a = pop(m), b = pop(m), push(m, a < b ? a : b); break;
        case 14: push(m, TABLE[code[i] >> 6](m->top)); break;
        default: a = pop(m), push(m, a), push(m, a >> 1); break;
        }
    }
}

int main(int argc, char **argv) {
    static Machine m = {.seed = 88172645463325252u};
    static uint8_t code[2000];
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int64_t sum = 0;
    do {
        for (int i = 0; i < (int)sizeof code; i++) code[i] = (uint8_t)(next(&m) >> 30);
        for (int i = 0; i < 20; i++) run(&m, code, sizeof code);
        sum += checksum(m.cells, CELLS);
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    printf("%lld\n", (long long)sum);
    return 0;
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
