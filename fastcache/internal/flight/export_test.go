package flight

// MaxMarks is how many marks a Group can hold in all.
const MaxMarks = 2 * shards * maxMarks

// Marks counts the marks held, ended ones included.
func (g *Group) Marks() int {
	n := 0
	for i := range g.shards {
		g.shards[i].mu.Lock()
		n += len(g.shards[i].young) + len(g.shards[i].old)
		g.shards[i].mu.Unlock()
	}
	return n
}
