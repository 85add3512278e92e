/* Loops over floating-point numbers, which compilers unroll and vectorize. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEP = 3, N = 72, POINTS = 2048 };

static double a[N][N], b[N][N], c[N][N], re[POINTS], im[POINTS], grid[N][N], other[N][N];

__attribute__((noinline)) static void multiply(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
}

__attribute__((noinline)) static double eliminate(void) {
    double determinant = 1;
    for (int k = 0; k < N; k++) {
        int best = k;
        for (int i = k + 1; i < N; i++)
            if (fabs(c[i][k]) > fabs(c[best][k])) best = i;
        if (c[best][k] == 0) return 0;
        for (int j = 0; j < N; j++) {
            double kept = c[k][j];
            c[k][j] = c[best][j];
            c[best][j] = kept;
        }
        determinant *= c[k][k] > 0 ? 1 : -1;
        for (int i = k + 1; i < N; i++) {
            double factor = c[i][k] / c[k][k];
            for (int j = k; j < N; j++) c[i][j] -= factor * c[k][j];
        }
    }
    return determinant;
}

// early: __attribute__((noinline, used)) double added_early(double x) { return x * x + 3 / (x + 1); }

// split: __attribute__((noinline))
static void butterfly(int i, int j, double wr, double wi) {
    double xr = re[j] * wr - im[j] * wi, xi = re[j] * wi + im[j] * wr;
    re[j] = re[i] - xr, im[j] = im[i] - xi;
    re[i] += xr, im[i] += xi;
}

__attribute__((noinline)) static void transform(void) {
    for (int i = 1, j = 0; i < POINTS; i++) {
        int bit = POINTS >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) {
            double kept = re[i];
            re[i] = re[j], re[j] = kept;
            kept = im[i], im[i] = im[j], im[j] = kept;
        }
    }
    for (int size = 2; size <= POINTS; size <<= 1) {
        double angle = 6.283185307179586 / size, wr = cos(angle), wi = sin(angle);
        for (int i = 0; i < POINTS; i += size) {
            double r = 1, s = 0;
            for (int j = 0; j < size / 2; j++) {
                butterfly(i + j, i + j + size / 2, r, s);
                double next = r * wr - s * wi;
                s = r * wi + s * wr, r = next;
            }
        }
    }
}

__attribute__((noinline)) static void relax(double from[N][N], double to[N][N]) {
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            to[i][j] = (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]) / 4;
}

__attribute__((noinline)) static double integrate(double from, double to, int steps) {
    double sum = 0, width = (to - from) / steps;
    for (int i = 0; i < steps; i++) {
        double x = from + (i + .5) * width;
        sum += x * x * x / (1 + x * x) + sqrt(x + STEP);
    }
    return sum * width;
}

__attribute__((noinline)) static int escape(double x, double y) {
    double u = 0, v = 0;
    int n = 0;
    for (; n < 60 && u * u + v * v < 4; n++) {
        double next = u * u - v * v + x;
        v = 2 * u * v + y, u = next;
    }
    return n;
}

__attribute__((noinline)) static long mandelbrot(int width) {
    long sum = 0;
    for (int i = 0; i < width; i++)
        for (int j = 0; j < width; j++) sum += escape(-2 + 3. * i / width, -1 + 2. * j / width);
    return sum;
}

__attribute__((noinline)) static void prepare(unsigned round) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * STEP + j + round) % 17 - 8;
            b[i][j] = (i + j * STEP) % 13 - 6;
            grid[i][j] = (i * j) % 5;
        }
    for (int i = 0; i < POINTS; i++) re[i] = (i * STEP + round) % 31, im[i] = 0;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1, sum = 0;
    unsigned round = 0;
    do {
        prepare(round++);
        multiply();
        sum += eliminate();
        transform();
        for (int i = 0; i < 20; i++) relax(grid, other), relax(other, grid);
        sum += re[5] + grid[N / 2][N / 2] + integrate(0, 9, 20000) + (double)mandelbrot(60);
    } while ((double)clock() / CLOCKS_PER_SEC < seconds);
    printf("%g\n", sum);
    return 0;
}
// late: __attribute__((noinline, used)) int added_late(int x) { return x * 31 % 977; }
