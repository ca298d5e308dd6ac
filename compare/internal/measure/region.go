package measure

import (
	"bytes"
	"fmt"
	"os"
)

// The lines around what [ReplaceRegion] rewrites.
const (
	RegionBegin = "<!-- bench:begin -->"
	RegionEnd   = "<!-- bench:end -->"
)

// CheckRegion returns the error that [ReplaceRegion] would return for the file as it is, so that it can be known before a long
// measurement.
func CheckRegion(path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := replaceRegion(file, ""); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ReplaceRegion puts text between the two marks of the file at path and leaves everything else, and the file's mode, as they are.
// A file without exactly one region is an error and is not changed.
func ReplaceRegion(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	replaced, err := replaceRegion(old, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, replaced, 0o644) // the mode counts for a new file only
}

func replaceRegion(file []byte, text string) ([]byte, error) {
	for _, mark := range []string{RegionBegin, RegionEnd} {
		if n := bytes.Count(file, []byte(mark)); n != 1 {
			return nil, fmt.Errorf("want the mark %s once, found it %d times", mark, n)
		}
	}
	head, rest, _ := bytes.Cut(file, []byte(RegionBegin))
	_, tail, ok := bytes.Cut(rest, []byte(RegionEnd))
	if !ok {
		return nil, fmt.Errorf("%s stands before %s", RegionEnd, RegionBegin)
	}
	out := bytes.NewBuffer(nil)
	out.Write(head)
	out.WriteString(RegionBegin + "\n\n" + text + "\n" + RegionEnd)
	out.Write(tail)
	return out.Bytes(), nil
}
