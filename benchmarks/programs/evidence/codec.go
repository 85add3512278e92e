// Codes and hashes of the standard library, and closures, over made data.
package main

import (
	"bytes"
	"compress/flate"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"os"
	"runtime/pprof"
	"strconv"
	"time"
)

const STEP = 3

type record struct {
	Name   string
	Values []float64
	Inner  map[string]int
}

// early: //go:noinline
// early: func addedEarly(x int) int { return x*x%977 + len(strconv.Itoa(x)) }
// early: func init() { if addedEarly(len(os.Args)) == 5 { println() } }

// split: //go:noinline
func mix(x uint32) uint32 { return x*2654435761 ^ x>>STEP }

//go:noinline
func makeData(seed uint32, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		seed = mix(seed + uint32(i))
		data[i] = "abcdefgh\n "[seed%10]
	}
	return data
}

//go:noinline
func pack(data []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, 5)
	if err != nil {
		panic(err)
	}
	w.Write(data)
	w.Close()
	return out.Bytes()
}

//go:noinline
func unpack(data []byte) int {
	n, err := io.Copy(io.Discard, flate.NewReader(bytes.NewReader(data)))
	if err != nil {
		panic(err)
	}
	return int(n)
}

//go:noinline
func describe(seed int) int {
	value := record{Name: fmt.Sprint("record ", seed), Inner: map[string]int{}}
	for i := 0; i < 40; i++ {
		value.Values = append(value.Values, float64(seed*i)/STEP)
		value.Inner[strconv.Itoa(i)] = i * seed
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var again record
	if err := json.Unmarshal(text, &again); err != nil {
		panic(err)
	}
	return len(again.Values)
}

//go:noinline
func factorial(n int64) int {
	result := big.NewInt(1)
	for i := int64(2); i <= n; i++ {
		result.Mul(result, big.NewInt(i))
	}
	return len(result.String())
}

//go:noinline
func apply(data []byte, steps []func(byte) byte) int {
	sum := 0
	for _, b := range data {
		for _, step := range steps {
			b = step(b)
		}
		sum += int(b)
	}
	return sum
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
	steps := []func(byte) byte{
		func(b byte) byte { return b<<1 | b>>7 },
		func(b byte) byte { return b ^ 0x5a },
		func(b byte) byte { return b*STEP + 1 },
	}
	begin, sum := time.Now(), 0
	for round := 0; ; round++ {
		data := makeData(uint32(round), 30000)
		sum += unpack(pack(data)) + int(md5.Sum(data)[0]) + int(crc32.ChecksumIEEE(data)%7)
		sum += len(base64.StdEncoding.EncodeToString(data)) + describe(round) + factorial(150) + apply(data, steps)
		if time.Since(begin).Seconds() >= seconds {
			break
		}
	}
	fmt.Println(sum)
}

// late: //go:noinline
// late: func addedLate(x int) int { return x * 31 % 977 }
// late: func init() { if addedLate(len(os.Args)) == 5 { println() } }
