// Names that belong to a module. Compiled by make_modern.py.
export module shop.till:drawer;
export namespace shop {
struct Coin { int worth; void drop(); template <class T> void count(T) {} };
void Coin::drop() {}
template <class T> void sort(T) {}
}
void helper() { shop::Coin coin; coin.count(coin); shop::sort(coin); }
