// Templates, lambdas, local classes, virtual functions, constructors, chains of inlined functions, cold parts.
#include "shapes.h"

#ifdef HOSTED
#include <stdexcept>
#include <string>
#endif

namespace geometry {

template <typename T> T square(T x) { return x * x; }

template <typename T, int N> struct Row {
  T cells[N];
  Row() {
    for (int i = 0; i < N; i++)
      cells[i] = square<T>(i + seed);
  }
  T sum() const {
    T total = 0;
    for (T cell : cells)
      total += cell;
    return total;
  }
};

namespace {
struct Hidden {
  int value;
  explicit Hidden(int v) : value(v) { sink += v; }
  NOINLINE int scaled(int by) const { return value * by + sink; }
};
} // namespace

Shape::Shape(int s) : side(s) { sink += s; }
Shape::~Shape() { sink -= side; }
int Shape::area() const { return 0; }

struct Square : Shape {
  explicit Square(int s) : Shape(s) {}
  int area() const override { return square(side); }
};

struct Cube final : Square {
  explicit Cube(int s) : Square(s) {}
  int area() const override { return 6 * Square::area(); }
  int operator()(int x) const { return x + side; }
};

static inline int innermost(int x) {
  sink = x;
  return x * 3 + sink;
}
static inline int middle(int x) { return innermost(x) + innermost(x + 1); }
static inline int outer(int x) {
  int y = middle(x);
  if (y > 100)
    y = middle(y);
  return y;
}

template <typename F> ALWAYS_INLINE int apply(F f, int n) {
  int total = 0;
  for (int i = 0; i < n; i++)
    total += f(i);
  return total;
}

COLD NOINLINE void report(int code) {
  sink = code;
  for (int i = 0; i < code; i++)
    sink += i;
}

NOINLINE int split(int x) {
  if (x > 1000) {
    report(x);
    report(x + 1);
    return outer(x);
  }
  return x + outer(x);
}

NOINLINE int local_class(int x) {
  struct Local {
    int base;
    NOINLINE int twice() const { return base * 2 + sink; }
    static NOINLINE int thrice(int v) { return v * 3 + sink; }
  };
  auto lambda = [x](int y) {
    auto nested = [&](int z) { return z * x + sink; };
    return nested(y) + Local::thrice(y);
  };
  return Local{x}.twice() + apply(lambda, x);
}

NOINLINE int closures(int x) {
  int captured = x;
  return apply([&](int i) { captured += i; return captured; }, x) + apply([=](auto i) { return i * captured; }, x);
}

#ifdef HOSTED
NOINLINE int throwing(int x) {
  std::string text = "x";
  try {
    if (x > 5)
      throw std::runtime_error(text + std::to_string(x));
    text += 'y';
  } catch (const std::runtime_error &error) {
    report(static_cast<int>(text.size()));
    return -1;
  } catch (...) {
    return -2;
  }
  return static_cast<int>(text.size());
}
#endif

template <typename... T> NOINLINE int variadic(T... values) { return (outer(values) + ... + 0); }

int use(int x) {
  Cube cube(x);
  const Shape &shape = cube;
  Row<int, 5> row;
  Row<long, 3> other;
  int total = shape.area() + cube(x) + row.sum() + static_cast<int>(other.sum()) + Hidden(x).scaled(2);
#ifdef HOSTED
  total += throwing(x);
#endif
  return total + split(x) + local_class(x) + closures(x) + variadic(x, x + 1, x + 2) + folded_a(x) + folded_b(x);
}

NOINLINE int folded_a(int x) { return x * 17 + 5; }
NOINLINE int folded_b(int x) { return x * 17 + 5; }

// Nothing refers to these: a linker that collects sections drops them.
int discarded(int x) { return outer(x) + x; }
template <typename T> struct Unused {
  NOINLINE static T grow(T x) { return x + outer(static_cast<int>(x)); }
};
template struct Unused<int>;

} // namespace geometry

extern "C" int shapes(int x) { return geometry::use(x); }
