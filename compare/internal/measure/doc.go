// Package measure is what every comparison in this module does in the same way: run rivals interleaved, reduce what was
// measured to medians with their spread, hold figures against goals, and print all of it with the facts that make it repeatable.
//
// Machines that people have are noisy: another process, a thermal limit or a neighbour on the host moves a figure by a factor
// of two between one minute and the next. What survives is a ratio whose two sides were measured in turn, many times. So a
// [Group] runs all its cases once a round, in an order that changes with the round, and [Results] compares medians over the
// rounds. Stretches are short, and one in which another process took the CPU away is repeated (on Linux, which tells), so that a
// busy machine gives the same ratios as a quiet one, as far as it can. [Run] ends soon after its context does, if the cases return.
package measure
