# Generics, closures, iterators, methods, templates, exceptions.
import std/[os, sequtils, strutils, tables]

type
  Shape = ref object of RootObj
    side: int
  Cube = ref object of Shape

method area(self: Shape): int {.base.} =
  self.side * self.side

method area(self: Cube): int =
  6 * self.side * self.side

proc clamped[T](value, low, high: T): T =
  if value < low: low elif value > high: high else: value

proc twice(x: int): int {.inline.} =
  x + x

template weighted(x: int): int =
  twice(x) + clamped(x, 2, 9)

iterator steps(limit: int): int =
  var i = 0
  while i < limit:
    yield i
    i += 2

proc counted(limit: int): int =
  var seen = initTable[string, int]()
  for i in steps(limit):
    seen.mgetOrPut($(i mod 5), 0) += weighted(i)
  var total = 0
  let add = proc (value: int) =
    total += value
  for value in seen.values:
    add(value)
  total

proc checked(x: int): int {.noinline.} =
  try:
    if x > 1000:
      raise newException(ValueError, "too large: " & $x)
    counted(x)
  except ValueError:
    -1

proc main() =
  let n = paramCount() + 10
  let shapes = @[Shape(side: n), Cube(side: 2)]
  let areas = shapes.mapIt(it.area())
  echo areas.foldl(a + b), " ", checked(n), " ", repeat("x", n), clamped(1.5, 2.0, 3.0)

main()
