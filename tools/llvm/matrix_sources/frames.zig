//! Generics by comptime, errors, inline loops, methods, nested types.
const std = @import("std");

const Square = struct {
    side: u64,
    fn area(self: Square) u64 {
        return self.side * self.side;
    }
};

fn Pair(comptime T: type) type {
    return struct {
        first: T,
        second: T,
        const Self = @This();
        noinline fn sum(self: Self) T {
            return self.first + clamped(T, self.second, 1, 9);
        }
    };
}

inline fn twice(x: u64) u64 {
    return x + x;
}

fn clamped(comptime T: type, value: T, low: T, high: T) T {
    return if (value < low) low else if (value > high) high else value;
}

noinline fn counted(limit: u64) u64 {
    var total: u64 = 0;
    var i: u64 = 0;
    while (i < limit) : (i += 1) {
        total += twice(i) % 7;
        inline for (.{ 1, 2, 3 }) |factor| {
            total += clamped(u64, i * factor, 2, 50);
        }
    }
    return total;
}

noinline fn checked(x: u64) !u64 {
    if (x > 1000) return error.TooLarge;
    return counted(x);
}

export fn exported(x: u64) u64 {
    const square = Square{ .side = x };
    const whole = Pair(u64){ .first = x, .second = 3 };
    const real = Pair(f64){ .first = 1.5, .second = 2.5 };
    return square.area() + whole.sum() + @as(u64, @intFromFloat(real.sum())) + (checked(x) catch 0);
}

pub fn main() void {
    std.debug.print("{d}\n", .{exported(@intFromPtr(&counted) & 63)});
}
