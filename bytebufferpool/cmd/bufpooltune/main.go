// Bufpooltune computes capacity classes from a histogram of requested sizes.
//
// It reads the JSON of Pool.SizeHistogram and prints the classes that waste the
// fewest bytes of capacity, for at most -classes of them, as Go source for
// Config.Classes:
//
//	bufpooltune -classes 8 histogram.json
//
// The answer is the optimum, and always the same for the same input. Each size of a
// row counts as the row's largest.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/hotset-go/hotset/bytebufferpool"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bufpooltune:", err)
		}
		os.Exit(2)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bufpooltune", flag.ContinueOnError)
	flags.SetOutput(stderr)
	count := flags.Int("classes", 15, "largest `number` of classes")
	largest := flags.Int("max", 1<<20, "ignore requests above this many `bytes`: they should not be pooled")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: bufpooltune [flags] [histogram.json]\nreads standard input without a file")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *count < 1 || *count > bytebufferpool.MaxClasses {
		return fmt.Errorf("-classes %d is not from 1 through %d", *count, bytebufferpool.MaxClasses)
	}
	input := stdin
	if flags.NArg() > 1 {
		return fmt.Errorf("one histogram at a time, not %d", flags.NArg())
	}
	if flags.NArg() == 1 {
		f, err := os.Open(flags.Arg(0))
		if err != nil {
			return err
		}
		defer f.Close()
		input = f
	}
	var rows []bytebufferpool.SizeCount
	if err := json.NewDecoder(input).Decode(&rows); err != nil {
		return fmt.Errorf("reading the histogram: %w", err)
	}
	sizes, ignored, err := fromHistogram(rows, *largest)
	if err != nil {
		return err
	}
	result := tune(sizes, *count)
	print(stdout, sizes, result, ignored, *largest)
	return nil
}

// print writes the classes as Go source, with what they waste beside what the
// default classes would.
func print(w io.Writer, sizes []size, result []int, ignored uint64, largest int) {
	requests := uint64(0)
	for _, s := range sizes {
		requests += s.count
	}
	fmt.Fprintf(w, "// %d requests; %d above %d bytes are not counted.\n", requests, ignored, largest)
	fmt.Fprintf(w, "// Unused bytes in all: %s with these classes", percent(waste(sizes, result), sizes))
	if powers, err := bytebufferpool.PowerOfTwo(64, powerAbove(sizes[len(sizes)-1].max)); err == nil {
		fmt.Fprintf(w, ", %s with powers of two from 64", percent(waste(sizes, powers), sizes))
	}
	fmt.Fprintln(w, ".")
	fmt.Fprint(w, "config.Classes = []int{")
	for i, c := range result {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprint(w, c)
	}
	fmt.Fprintf(w, "}\nconfig.MaxPooledCapacity = %d\n", result[len(result)-1])
}

func powerAbove(n int) int {
	p := 64
	for p < n {
		p *= 2
	}
	return p
}

func percent(unused float64, sizes []size) string {
	asked := 0.0
	for _, s := range sizes {
		asked += float64(s.max) * float64(s.count)
	}
	return fmt.Sprintf("%.1f %% of the capacity", 100*unused/(asked+unused))
}
