package measure

import (
	"strings"
	"unicode/utf8"
)

// Table is a Markdown table. A column in which every cell is a figure is aligned to the right.
type Table struct {
	Columns []string
	rows    [][]string
}

// Add appends a row; missing cells are empty, and a "|" in a cell is escaped.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.Columns))
	for i := range row {
		if i < len(cells) {
			row[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
	}
	t.rows = append(t.rows, row)
}

// Rows returns the number of rows.
func (t Table) Rows() int { return len(t.rows) }

// String returns the table in Markdown, its columns padded so that it can also be read as it is, ended by a newline.
func (t Table) String() string {
	widths := make([]int, len(t.Columns))
	right := make([]bool, len(t.Columns))
	for i, title := range t.Columns {
		widths[i] = max(3, utf8.RuneCountInString(title))
		right[i] = len(t.rows) > 0
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			right[i] = right[i] && numeric(row[i])
		}
		// A column of sentences would pad every other row to the length of the longest.
		if widths[i] > maxPadded {
			widths[i] = 0
		}
	}
	var b strings.Builder
	writeRow := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
	}
	writeRow(t.Columns)
	for i, w := range widths {
		rule := strings.Repeat("-", max(3, w))
		if right[i] {
			rule = rule[1:] + ":"
		}
		b.WriteString("| " + rule + " ")
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		writeRow(row)
	}
	return b.String()
}

// maxPadded is the widest column that is padded, in characters.
const maxPadded = 60

// numeric tells whether a cell should be aligned to the right: figures, "-" and empty ones.
func numeric(cell string) bool {
	cell = strings.Trim(cell, "*")
	return cell == "" || cell == "-" || cell[0] >= '0' && cell[0] <= '9'
}
