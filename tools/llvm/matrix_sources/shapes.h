#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold))
#define ALWAYS_INLINE __attribute__((always_inline)) inline

extern "C" {
extern volatile int sink;
extern int seed;
}

namespace geometry {
struct Shape {
  int side;
  explicit Shape(int s);
  virtual ~Shape();
  virtual int area() const;
};
int folded_a(int x);
int folded_b(int x);
// In several units: the linker keeps one copy.
inline NOINLINE int shared(int x) {
  sink = x;
  return x + 1;
}
template <typename T> NOINLINE T common(T x) { return x + seed; }
} // namespace geometry
