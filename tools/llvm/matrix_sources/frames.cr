# Generics, blocks, procs, modules, overloading, exceptions.
module Area
  abstract def area : Int32

  def twice : Int32
    area * 2
  end
end

struct Square
  include Area

  def initialize(@side : Int32)
  end

  def area : Int32
    @side * @side
  end
end

class Pair(T)
  def initialize(@first : T, @second : T)
  end

  def sum
    yield @first
    @first + @second
  end

  def [](index : Int32) : T
    index == 0 ? @first : @second
  end
end

@[NoInline]
def counted(limit : Int32) : Int32
  seen = Hash(Int32, Int32).new(0)
  limit.times { |i| seen[i % 5] += i.clamp(2, 9) }
  seen.values.sum
end

@[NoInline]
def checked(x : Int32) : Int32
  raise ArgumentError.new("too large") if x > 1000
  counted(x)
rescue ArgumentError
  -1
end

n = ARGV.size + 10
total = 0
scale = ->(x : Int32) { x * n }
sum = Pair.new(n, 2).sum { |x| total += x }
puts Square.new(n).twice + sum + checked(n) + scale.call(3) + Pair.new(1.5, 2.5)[0]
