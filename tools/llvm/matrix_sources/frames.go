// Methods, closures, generics, defers, inlined functions.
package main

import (
	"fmt"
	"os"
	"sort"
)

type shape interface{ area() int }
type square struct{ side int }
type pair[T any] struct{ a, b T }

func (s square) area() int      { return double(s.side) * s.side / 2 }
func (s *square) grow(by int)   { s.side += by }
func (p pair[T]) swap() pair[T] { return pair[T]{p.b, p.a} }

func double(x int) int { return 2 * x }

func apply[T any](items []T, f func(T) T) []T {
	for i := range items {
		items[i] = f(items[i])
	}
	return items
}

//go:noinline
func deferred(n int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return fmt.Errorf("%d", []int{1}[n])
}

//go:noinline
func cold(n int) int { return n * 7 }

func main() {
	n := len(os.Args)
	s := square{n}
	s.grow(n)
	items := apply([]int{n, 3}, func(x int) int { return double(x) + cold(s.side) })
	sort.Slice(items, func(i, j int) bool { return items[i] < items[j] })
	var any shape = s
	fmt.Println(any.area(), items, pair[int]{1, n}.swap(), deferred(n))
}
