// Features of D whose names are mangled in ways of their own. Compiled by make_dlang.py.
module t;
import std.stdio; import std.algorithm; import std.range; import std.conv; import std.typecons;
struct S(T, int n = 3, string s = "a\tb", bool b = true, char c = 'x', wchar w='\u1234', double d = 1.5, float nn=float.nan) { T x; void m(scope const ref T a, out int o, lazy int l, int[] v...) const shared {} this(int) {} ~this(){} this(this){} }
struct P { int a; string b; }
struct V(P p) { void f(){} }
struct AA(alias f) { static void go(){ f(1); } }
enum int[string] aa = ["k":1]; enum int[] arr=[1,2,3];
struct W(int[] a) { void f(){} } 
class C { int x; abstract void q(); void vf(const C c, immutable(char)[] s, int delegate(int) pure nothrow d, void function() @safe f, int[string] h, int[4] g, shared int* p) {} }
interface I { void i(); }
extern(C) void cfn(); extern(C++) void cppfn(int);
void vari(...) {} void tvari(int[] a...) {} void nested(int a) { void inner(string s) { struct L { void lm(){} } L l; l.lm(); writeln(s); } inner("x"); auto f = (int z) => z + a; f(2); }
inout(int)* io(inout(int)* p){ return p; }
T idt(T)(T t){ return t; } auto tup(){ return tuple(1,"a"); }
noreturn nr(){ throw new Exception("x"); }
void main(){ S!(int) s; const int k=1; int o; V!(P(1,"z")) v; v.f(); AA!((x){ writeln(x); }).go(); W!(arr) w; w.f(); nested(3); iota(10).map!(a=>a*2).filter!(a=>a>3).each!(x=>writeln(x)); writeln([3,1].sort!"a<b"); idt(1.5); idt("x"d); writeln(tup()); writefln("%s", to!string(5)); }
