// A second unit: functions that both have, and calls across units for link time optimization.
#include "shapes.h"

#ifndef HOSTED
void operator delete(void *, decltype(sizeof(0))) noexcept { sink = 0; }
void operator delete(void *) noexcept { sink = 0; }
#endif

namespace geometry {
struct Circle : Shape {
  Circle(int s) : Shape(s) {}
  ~Circle() override { sink = 7; }
  int area() const override { return side * 3; }
};
static int helper(int x) { return shared(x) + common(x); }
} // namespace geometry

extern "C" int other(int x) {
  geometry::Circle circle(x);
  return circle.area() + geometry::helper(x) + geometry::common(2L) + geometry::folded_a(x);
}

extern "C" int other_discarded(int x) { return geometry::helper(x) - 1; }
