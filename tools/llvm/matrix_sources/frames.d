// Templates, nested functions, delegates, classes, structs, scope(exit), contracts.
module frames;

import std.algorithm : filter, map, sum;
import std.array : array;
import std.stdio : writeln;

interface Area
{
    int area() const;
}

class Square : Area
{
    private int side;
    this(int side)
    {
        this.side = side;
    }

    override int area() const
    {
        return twice(side) * side;
    }
}

struct Pair(T, int factor)
{
    T first, second;
    T weigh() const
    in (factor > 0)
    {
        return first * factor + second;
    }

    Pair opBinary(string op : "+")(Pair other) const
    {
        return Pair(first + other.first, second + other.second);
    }
}

pragma(inline, true) int twice(int x)
{
    return x + x;
}

T clamped(T)(T value, T low, T high)
{
    return value < low ? low : value > high ? high : value;
}

int enclosing(int x)
{
    int total = x;
    void add(int y)
    {
        total += clamped(y, 0, 100);
    }

    foreach (i; 0 .. x)
        add(twice(i));
    auto scaled = (int y) => y * total;
    return scaled(x);
}

extern (C) int exported(int x)
{
    scope (exit)
        writeln("left");
    try
    {
        if (x > 1000)
            throw new Exception("too large");
        return enclosing(x);
    }
    catch (Exception error)
    {
        return -1;
    }
}

void main(string[] arguments)
{
    const n = cast(int) arguments.length;
    Area[] shapes = [new Square(n), new Square(2)];
    auto pair = Pair!(int, 3)(n, 2) + Pair!(int, 3)(1, n);
    auto wide = Pair!(long, 5)(n, 7);
    writeln(shapes.map!(s => s.area()).filter!(a => a > 0).sum, pair.weigh(), wide.weigh(), exported(n));
}
