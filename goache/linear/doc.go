// Package linear checks that concurrent operations on one key of a goache cache are
// linearizable: that each seems to happen at one instant between its call and its
// return. It is a module of its own so that goache needs nobody's code.
package linear
