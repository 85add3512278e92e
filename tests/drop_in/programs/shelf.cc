// Makes one mistake, which its argument names, for the reports of sanitizers.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace shelf {

struct Book {
  std::string title;
  std::vector<int> pages;
};

template <typename Value>
__attribute__((always_inline)) inline Value read_at(const Value *values, int number) {
  return values[number];
}

__attribute__((noinline)) int behind_the_end(const std::vector<int> &pages) {
  return read_at(pages.data(), static_cast<int>(pages.size()));
}

__attribute__((noinline)) int after_free(int count) {
  std::unique_ptr<Book> book(new Book{"one", std::vector<int>(count, 7)});
  const int *pages = book->pages.data();
  book.reset();
  auto first = [pages](int number) __attribute__((noinline)) { return read_at(pages, number); };
  return first(count / 2);
}

}  // namespace shelf

__attribute__((noinline)) static int on_the_stack(int count) {
  char text[16];
  std::memset(text, 'x', count);
  return text[count % 16];
}

__attribute__((noinline)) static int too_large(int count) { return count * 1000; }

int main(int argc, char **argv) {
  int count = argc + 2;
  switch (argc > 1 ? argv[1][0] : 'b') {
    case 'b': return shelf::behind_the_end(std::vector<int>(count, 1));
    case 'a': return shelf::after_free(count);
    case 'o': return on_the_stack(count + 20);
    default: return too_large(count * 100000000);
  }
}
