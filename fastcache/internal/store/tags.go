package store

import (
	"slices"
	"strings"
	"sync"
)

// tagIndex finds the entries that carry a tag, so that a purge of a tag touches no others. An entry
// without tags costs it nothing, not even its lock; one with n tags about 85+32n bytes (BenchmarkIndex),
// and each distinct tag about 60 and its name.
//
// It is written under the shard's lock of the entry in question, in the same hold in which the entry
// enters or leaves the index. mu comes after shard.mu and holds no other lock inside.
type tagIndex struct {
	mu      sync.Mutex
	byName  map[string]*tag        // guarded by mu
	carried map[*Entry][]tagMember // guarded by mu; the entries with markTagged
}

// tag is one tag that is carried. Guarded by tagIndex.mu.
type tag struct {
	name  string
	first *tagMember
}

// tagMember is an entry's place in the list of one of its tags. Guarded by tagIndex.mu.
type tagMember struct {
	tag        *tag
	e          *Entry
	prev, next *tagMember
}

// enter adds e under names, each once. The caller holds e's shard.mu.
func (t *tagIndex) enter(e *Entry, names []string) {
	if len(names) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(e, names)
}

// leave takes e out. The caller holds e's shard.mu.
func (t *tagIndex) leave(e *Entry) {
	if e.mark.Load()&markTagged == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(e)
}

// change gives e other names. The caller holds e's shard.mu.
func (t *tagIndex) change(e *Entry, names []string) {
	if len(names) == 0 {
		t.leave(e)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Mostly a refresh brings what was there.
	if slices.EqualFunc(t.carried[e], names, func(m tagMember, name string) bool { return m.tag.name == name }) {
		return
	}
	t.remove(e)
	t.add(e, names)
}

func (t *tagIndex) add(e *Entry, names []string) {
	if t.byName == nil {
		t.byName = make(map[string]*tag)
		t.carried = make(map[*Entry][]tagMember)
	}
	members := make([]tagMember, len(names))
	for i, name := range names {
		tg := t.byName[name]
		if tg == nil {
			// A copy: the name may be a piece of a whole response's bytes.
			tg = &tag{name: strings.Clone(name)}
			t.byName[tg.name] = tg
		}
		m := &members[i]
		*m = tagMember{tag: tg, e: e, next: tg.first}
		if m.next != nil {
			m.next.prev = m
		}
		tg.first = m
	}
	t.carried[e] = members
	e.mark.Or(markTagged)
}

func (t *tagIndex) remove(e *Entry) {
	members := t.carried[e]
	for i := range members {
		m := &members[i]
		if m.next != nil {
			m.next.prev = m.prev
		}
		if m.prev != nil {
			m.prev.next = m.next
		} else if m.tag.first = m.next; m.next == nil {
			delete(t.byName, m.tag.name)
		}
	}
	delete(t.carried, e)
	e.mark.And(^uint32(markTagged))
	if len(t.carried) == 0 {
		t.byName, t.carried = nil, nil // maps do not shrink
	}
}

// of returns the names that e is under.
func (t *tagIndex) of(e *Entry) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, m := range t.carried[e] {
		names = append(names, m.tag.name)
	}
	return names
}

// carriers returns the entries that carry any of names, each once.
func (t *tagIndex) carriers(names []string) []*Entry {
	t.mu.Lock()
	var found []*Entry
	for _, name := range names {
		if tg := t.byName[name]; tg != nil {
			for m := tg.first; m != nil; m = m.next {
				found = append(found, m.e)
			}
		}
	}
	t.mu.Unlock()
	if len(names) > 1 {
		sortBySeq(found)
		found = slices.Compact(found)
	}
	return found
}

// maxTagBars is how many purges of tags a fetch in flight remembers one by one.
const maxTagBars = 64

// tagBars is what a fetch knows of the purges of tags since it was registered: the tags of what it
// brings are known at its end only. Guarded by the fetch's shard.mu.
type tagBars struct {
	sets [][]string // sorted; shared by the fetches that were in flight
	all  bool       // there were too many: every tag counts as purged
}

func (b *tagBars) add(set []string) {
	if b.all = b.all || len(b.sets) == maxTagBars; b.all {
		b.sets = nil
		return
	}
	b.sets = append(b.sets, set)
}

// any reports whether there has been a purge of tags at all.
func (b *tagBars) any() bool { return b.all || len(b.sets) > 0 }

// meet reports whether one of tags has been purged.
func (b *tagBars) meet(tags []string) bool {
	if b.all {
		return len(tags) > 0
	}
	for _, set := range b.sets {
		for _, name := range tags {
			if _, found := slices.BinarySearch(set, name); found {
				return true
			}
		}
	}
	return false
}
