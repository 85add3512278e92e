// An index of made texts: maps, slices, sorting, goroutines, interfaces, regular expressions.
package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const STEP = 7

type scorer interface{ score(word string) int }

type byLength struct{ factor int }
type byVowels struct{ pattern *regexp.Regexp }

func (s byLength) score(word string) int { return len(word) * s.factor }
func (s byVowels) score(word string) int { return len(s.pattern.FindAllString(word, -1)) * STEP }

// early: //go:noinline
// early: func addedEarly(x int) int { return x*x%977 + len(strconv.Itoa(x)) }
// early: func init() { if addedEarly(len(os.Args)) == 5 { println() } }

// split: //go:noinline
func draw(state *uint64, bound int) int {
	*state = *state*6364136223846793005 + 1442695040888963407
	return int(*state>>33) % bound
}

func makeText(state *uint64, words int) string {
	var b strings.Builder
	for i := 0; i < words; i++ {
		for j := 0; j < 2+draw(state, 5); j++ {
			b.WriteByte("etaoinshrd"[draw(state, 10)])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[word]++
	}
	return counts
}

func top(counts map[string]int, n int) []string {
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool {
		if counts[words[i]] != counts[words[j]] {
			return counts[words[i]] > counts[words[j]]
		}
		return words[i] < words[j]
	})
	return words[:min(n, len(words))]
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

//go:noinline
func sieve(limit int) int {
	composite := make([]bool, limit)
	primes := 0
	for i := 2; i < limit; i++ {
		if composite[i] {
			continue
		}
		primes++
		for j := i * i; j < limit; j += i {
			composite[j] = true
		}
	}
	return primes
}

//go:noinline
func collatz(limit int) int {
	longest := 0
	for i := 1; i < limit; i++ {
		n, steps := i, 0
		for n != 1 {
			if n%2 == 0 {
				n /= 2
			} else {
				n = 3*n + 1
			}
			steps++
		}
		if steps > longest {
			longest = steps
		}
	}
	return longest
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	if len(os.Args) > 2 {
		file, err := os.Create(os.Args[2])
		if err != nil {
			panic(err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			panic(err)
		}
		defer pprof.StopCPUProfile()
	}
	scorers := []scorer{byLength{STEP}, byVowels{regexp.MustCompile("[aeio]+")}}
	begin, state, sum := time.Now(), uint64(5), 0
	for {
		text := makeText(&state, 3000)
		words := top(count(text), 200)
		results := make([]int, len(scorers))
		var group sync.WaitGroup
		for i, each := range scorers {
			group.Add(1)
			go func(i int, each scorer) {
				defer group.Done()
				for _, word := range words {
					results[i] += each.score(word)
				}
			}(i, each)
		}
		group.Wait()
		sum += results[0] + results[1] + sieve(20000) + collatz(2000) + len(fmt.Sprintf("%v %d", words[:5], sum))
		if time.Since(begin).Seconds() >= seconds {
			break
		}
	}
	fmt.Println(sum)
}

// late: //go:noinline
// late: func addedLate(x int) int { return x * 31 % 977 }
// late: func init() { if addedLate(len(os.Args)) == 5 { println() } }
