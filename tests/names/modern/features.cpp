// Features of C++20 to C++26 whose names are mangled in ways of their own. Compiled by make_modern.py.
#include <compare>
#include <concepts>
#include <coroutine>
#include <initializer_list>
#include <new>
#include <typeinfo>

int sink;
int global[10];

// Concepts and constraints.
template <class T> concept Any = true;
template <class T, class U> concept Pair = sizeof(T) <= sizeof(U);
template <Any T> void constrained(T) { sink++; }
template <Any T, Pair<T> U> void constrained_by_first(T, U) { sink++; }
template <Any... T> void constrained_pack(T...) { sink++; }
template <class T> requires(sizeof(T) > 1) void required(T) { sink++; }
template <class T> void trailing(T) requires Any<T> { sink++; }
template <class T> void both(T) requires(Any<T> && sizeof(T) < 100) || Pair<T, T> { sink++; }
template <class T> void asking(T)
    requires requires(T t) { t.x; { t + 1 } noexcept -> std::same_as<int>; typename T::type; requires Any<T>; } { sink++; }
template <class T> void asking_nothing(T) requires requires { T(); } { sink++; }
template <class... T> void folded(T...) requires(Any<T> && ...) { sink++; }
template <class T> void negated(T) requires(!Pair<T, char>) { sink++; }
void abbreviated(Any auto) { sink++; }
void abbreviated_pack(Pair<int> auto...) { sink++; }
Any auto deduced(int i) { return i; }
template <Any auto V> void constrained_value() { sink++; }
template <template <class> requires true class TT> void constrained_template() { sink++; }
template <template <Any> class TT> void template_of_constrained() { sink++; }
template <class> struct Box {};
template <Any> struct AnyBox {};
struct Has { int x = 0; using type = int; int operator+(int) noexcept { return 1; } };
template <Any T> struct Holder {
    void method() requires Pair<T, T> { sink++; }
    template <Pair<T> U> void member(U) requires Any<U> { sink++; }
    Holder() requires Any<T> { sink++; }
    ~Holder() requires Any<T> { sink++; }
    operator int() requires Any<T> { return 1; }
    friend void befriended(Holder) requires Any<T> { sink++; }
    template <class U> friend void template_befriended(Holder, U) requires Any<T> && Any<U> { sink++; }
    friend bool operator<(Holder, Holder) requires Any<T> { return sink; }
};

// Explicit object parameters, spaceship, subscripts.
struct Object {
    int value;
    template <class Self> void deducing(this Self &&) { sink++; }
    void by_value(this Object) { sink++; }
    void by_reference(this const Object &, int) { sink++; }
    std::strong_ordering operator<=>(const Object &) const;
    template <class T> int operator<=>(T) const { return sink; }
    bool operator==(const Object &) const;
    int operator[](int, int) const { return sink; }
    static int operator()(int) { return sink; }
};
std::strong_ordering Object::operator<=>(const Object &) const { return std::strong_ordering::equal; }
bool Object::operator==(const Object &) const { return true; }

// Values of templates.
struct Point { int x, y; int *p; };
struct Inner { int a[2]; };
struct Outer { Inner i; int j; };
union Either { int i; float f; };
Either chosen;
struct Named { char text[4]; constexpr Named(const char (&t)[4]) { for (int i = 0; i < 4; i++) text[i] = t[i]; } };
template <auto V> void value() { sink++; }
template <auto... V> void values() { sink++; }
template <Point P> struct Placed { void method() { sink++; } };
template <Named N> void named() { sink++; }
template <Either E> void either() { sink++; }
template <class T, T V> void typed_value() { sink++; }
template <const int *P> void pointer() { sink++; }
template <const int &R> void reference() { sink++; }
template <int Object::*M> void member_pointer() { sink++; }
template <double D> void floating() { sink++; }
template <auto F = [] { return 1; }> void closure_value() { sink++; }
template <Named N> int operator""_named() { return sink; }

// Types.
void bit_ints(_BitInt(32), unsigned _BitInt(7)) { sink++; }
template <int N> void bit_int_of(_BitInt(N)) { sink++; }
void floats(_Float16, __bf16, __float128) { sink++; }
void characters(char8_t, char16_t, char32_t) { sink++; }
using Vector = int __attribute__((vector_size(16)));
template <int N> using Vectors = int __attribute__((ext_vector_type(N)));
void vector(Vector) { sink++; }
template <int N> void vector_of(Vectors<N>) { sink++; }
void atomic(_Atomic(int)) { sink++; }
void never_throws(void (*)() noexcept, int (Object::*)() const && noexcept) { sink++; }
template <bool B> void may_throw(void (*)() noexcept(B)) { sink++; }
template <class T> void underlying(__underlying_type(T)) { sink++; }
enum class Colour : short { red };
template <class... T> T...[0] first(T... t) { return t...[0]; }
template <int I, class... T> auto indexed(T... t) -> T...[I] { return t...[I]; }
decltype(auto) deduced_fully() { return (sink); }
template <class T> decltype(auto) deduced_template(T) { return (sink); }

// Lambdas.
template <class... T> auto captured(T... t) {
    return [... t = t]<class U, int N, template <class> class TT, class... V>(U u, TT<U>, V...) { sink++; };
}
inline auto generic = [](auto... x) { sink++; return sizeof...(x); };
inline auto recursive = [](this auto self, int x) { sink++; return x; };
inline auto constrained_lambda = []<Any T>(T, Any auto) requires Any<T> { sink++; };
inline auto static_lambda = [](int) static { sink++; };
template <class T> auto in_template(T t) { return [t](auto x, T y) { sink++; return x; }; }
struct Members {
    int a = [] { sink++; return 1; }();
    void method(int b = [](auto x) { sink++; return x; }(2)) { sink += b; }
};
template <class T> void run(T t) { t(); }

// Expressions in signatures.
template <class T> auto sized(T t) -> decltype(sizeof(T) + sizeof(t) + alignof(T), 1) { return 1; }
template <class T> auto casted(T t) -> decltype(static_cast<int>(t), (long)t, T(t), T{t}, int()) { return 1; }
template <class T> auto created(T t) -> decltype(new T, new T(1), new (&t) T[2], delete &t, 1) { return 1; }
template <class T> auto stepped(T t) -> decltype(t++, ++t, t--, -t, !t, ~t, &t, *&t, 1) { return 1; }
template <class T> auto compared(T t) -> decltype(t < 1, t > 1, t <=> 1, t << 1, t >> 1, t && 1, t ? 1 : 2, 1) { return 1; }
template <class T> auto accessed(T t, T *p) -> decltype(t.x, p->x, t.*&T::x, t.template get<int>(), T::make(), 1) { return 1; }
template <class T> auto thrown(T t) -> decltype(noexcept(t), typeid(t).name(), t ? throw 1 : 1, 1) { return 1; }
template <class... T> auto summed(T... t) -> decltype((t + ... + 0), (0 + ... + t), (..., t), (t && ...)) { return 0; }
template <class... T> auto counted(T... t) -> decltype(sizeof...(T) + sizeof...(t)) { return 0; }
template <class T> auto destroyed(T t) -> decltype(t.~T(), t.operator+(1), ::operator new(1), 1) { return 1; }
template <class T> auto qualified() -> decltype(T::template nested<int>::member, 1) { return 1; }
template <class T> auto braced(T t) -> decltype(Point{t, t, nullptr}, Point{.x = t, .y = t}, 1) { return 1; }
struct Rich { int x; template <class T> int get(); static int make(); template <class T> struct nested { static int member; }; int operator+(int); };

// Coroutines.
struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_never initial_suspend() { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
        std::suspend_always yield_value(int) { return {}; }
    };
    std::suspend_never operator co_await() { return {}; }
};
Task coroutine(int n) { co_yield n; co_await Task{}; }
template <class T> Task coroutine_template(T n) { co_yield 1; }

// Tags, anonymous things, structured bindings, literals, conversions.
inline namespace tagged __attribute__((abi_tag("tag"))) { struct Tagged {}; }
Tagged returns_tagged() { return {}; }
namespace { struct Hidden { template <class T> void method(T) { sink++; } }; }
struct { int x; void method() { sink++; } } unnamed;
struct Twins { int a, b; };
auto [left, right] = Twins{1, 2};
template <char... C> int operator""_letters() { return sink; }
template <class T> struct Converts {
    template <class U> operator Box<U>() { return {}; }
    template <class U> explicit(sizeof(U) > 1) operator U *() { return nullptr; }
    operator T() { return T(); }
};
template <class T> T (*returns_function(T))(double) { return nullptr; }
template <class T> auto returns_array(T) -> int (&)[3] { static int a[3]; return a; }
void enabled(int i) __attribute__((enable_if(i > 0, "positive"))) { sink++; }
extern thread_local int per_thread;
thread_local int per_thread = sink;
const Point &extended = Point{1, 2, nullptr};

void use() {
    constrained(1); constrained_by_first(1, 'a'); constrained_pack(1, 'a'); required(1); trailing(1); both(1);
    asking(Has{}); asking_nothing(1); folded(1, 2); negated(1); abbreviated(1); abbreviated_pack('a', 1); deduced(1);
    constrained_value<1>(); constrained_template<Box>(); template_of_constrained<AnyBox>();
    Holder<int> h; h.method(); h.member(1); int i = h; befriended(h); template_befriended(h, 1.0); h < h;
    Object o{1}; o.deducing(); o.by_value(); o.by_reference(1); o <=> 1; o <=> o; o[1, 2]; Object::operator()(1);
    value<1>(); value<'a'>(); value<true>(); value<nullptr>(); value<&global>(); value<&global[1]>(); value<-5L>();
    value<Point{1, 2, nullptr}>(); value<Point{1, 2, &global[3]}>(); value<Outer{{{1, 2}}, 3}>(); value<Colour::red>();
    value<&Object::value>(); value<&chosen.f>(); value<1.5>(); value<1.5f>(); value<[](int x) { return x; }>(); values<1, 'a', 2u>();
    Placed<Point{1, 2, &global[3]}>{}.method(); named<"abc">(); either<Either{1}>(); either<Either{.f = 1.5f}>();
    typed_value<int, 3>(); typed_value<Colour, Colour::red>(); pointer<&global[2]>(); pointer<global>(); reference<global[4]>();
    member_pointer<&Object::value>(); member_pointer<nullptr>(); floating<2.5>(); closure_value<>(); "abc"_named;
    bit_int_of<3>(1); vector_of<4>({}); may_throw<true>(nullptr); may_throw<false>(nullptr); underlying<Colour>(1);
    first(1, 'a'); indexed<1>(1, 'a'); deduced_template(1);
    captured(1, 2).template operator()<int, 3, Box>(1, Box<int>{}, 2.0); generic(1, 'a'); recursive(1);
    constrained_lambda(1, 2); static_lambda(1); in_template(1)('a', 2); Members m; m.method(); run([] { sink++; });
    sized(1); casted(1); created(1); stepped(1); compared(1); Rich r; accessed(r, &r); thrown(1); summed(1, 2);
    counted(1, 2); destroyed(r); qualified<Rich>(); braced(1);
    coroutine(1); coroutine_template(1); Hidden{}.method(1); unnamed.method(); 123_letters;
    Converts<int> c; (void)(Box<char>)c; (void)(Box<int> *)c; (void)(int)c; returns_function(1); returns_array(1); enabled(1);
    sink += left + per_thread + extended.x;
    []<class T>(T t) requires requires { t + 1; } { sink++; }(1);
    struct Local { void method(int) { sink++; } };
    Local{}.method(1);
}
