package words

import (
	"sort"
	"strings"
	"testing"
)

func count(text string) []string {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[word]++
	}
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Slice(words, func(i, j int) bool { return counts[words[i]] > counts[words[j]] })
	return words
}

func BenchmarkCount(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over the lazy dog ", 200)
	for i := 0; i < b.N; i++ {
		count(text)
	}
}
