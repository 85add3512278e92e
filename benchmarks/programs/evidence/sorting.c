/* Sorts of several kinds over the same numbers, by pointers to functions. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEP = 12, COUNT = 3000 };

typedef void (*Sort)(uint32_t *, int);

static uint32_t state = 1;

static uint32_t draw(void) { return state = state * 1664525u + 1013904223u, state >> 3; }

// split: __attribute__((noinline))
static void swap(uint32_t *a, uint32_t *b) {
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

__attribute__((noinline)) static void insertion(uint32_t *v, int n) {
    for (int i = 1; i < n; i++) {
        uint32_t x = v[i];
        int j = i;
        for (; j > 0 && v[j - 1] > x; j--) v[j] = v[j - 1];
        v[j] = x;
    }
}

// early: __attribute__((noinline, used)) uint32_t added_early(uint32_t *v, int n) { uint32_t s = 0; while (n--) s ^= v[n] * 7; return s; }

__attribute__((noinline)) static void quick(uint32_t *v, int n) {
    while (n > STEP) {
        uint32_t pivot = v[n / 2];
        int i = -1, j = n;
        for (;;) {
            while (v[++i] < pivot) {}
            while (v[--j] > pivot) {}
            if (i >= j) break;
            swap(v + i, v + j);
        }
        quick(v, j + 1);
        v += j + 1;
        n -= j + 1;
    }
    insertion(v, n);
}

static void sift(uint32_t *v, int at, int n) {
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && v[child + 1] > v[child]) child++;
        if (v[at] >= v[child]) return;
        swap(v + at, v + child);
    }
}

__attribute__((noinline)) static void heap(uint32_t *v, int n) {
    for (int i = n / 2; i-- > 0;) sift(v, i, n);
    for (int i = n; i-- > 1;) {
        swap(v, v + i);
        sift(v, 0, i);
    }
}

__attribute__((noinline)) static void merge(uint32_t *v, uint32_t *spare, int n) {
    if (n <= STEP) {
        insertion(v, n);
        return;
    }
    int half = n / 2, i = 0, j = half, k = 0;
    merge(v, spare, half);
    merge(v + half, spare, n - half);
    while (i < half && j < n) spare[k++] = v[i] <= v[j] ? v[i++] : v[j++];
    while (i < half) spare[k++] = v[i++];
    while (j < n) spare[k++] = v[j++];
    memcpy(v, spare, (size_t)n * sizeof *v);
}

static void merging(uint32_t *v, int n) {
    static uint32_t spare[COUNT];
    merge(v, spare, n);
}

__attribute__((noinline)) static void radix(uint32_t *v, int n) {
    static uint32_t spare[COUNT];
    for (int shift = 0; shift < 32; shift += 8) {
        int counts[257] = {0};
        for (int i = 0; i < n; i++) counts[(v[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++) counts[i + 1] += counts[i];
        for (int i = 0; i < n; i++) spare[counts[v[i] >> shift & 255]++] = v[i];
        memcpy(v, spare, (size_t)n * sizeof *v);
    }
}

__attribute__((noinline)) static void shell(uint32_t *v, int n) {
    for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (int i = gap; i < n; i++) {
            uint32_t x = v[i];
            int j = i;
            for (; j >= gap && v[j - gap] > x; j -= gap) v[j] = v[j - gap];
            v[j] = x;
        }
    }
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

__attribute__((noinline)) static void library(uint32_t *v, int n) { qsort(v, (size_t)n, sizeof *v, compare); }

__attribute__((noinline)) static uint64_t digest(const uint32_t *v, int n) {
    uint64_t sum = 14695981039346656037u;
    for (int i = 0; i < n; i++) sum = (sum ^ v[i]) * 1099511628211u;
    return sum;
}

int main(int argc, char **argv) {
    static const Sort sorts[] = {quick, heap, merging, radix, shell, library};
    static uint32_t numbers[COUNT], copy[COUNT];
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    uint64_t sum = 0;
    do {
        for (int i = 0; i < COUNT; i++) numbers[i] = draw();
        for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
            memcpy(copy, numbers, sizeof copy);
            sorts[i](copy, COUNT);
            sum += digest(copy, COUNT);
        }
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
