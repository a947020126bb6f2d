package main

// goal is a goal for one row: a multiple of a peer's figure, or an upper limit.
type goal struct {
	row   row
	own   string  // the name of the runnel server
	peer  string  // the peer's name; "" for an upper limit
	value float64 // the least multiple, or the upper limit (exclusive)
}

// goals returns the goals of this program's rows. bench/README.md has the goals that other
// benchmarks measure.
func goals() []goal {
	return []goal{
		{putKiB, runnelDurable, kinesaliteName, 8},
		{putKiB, runnelDurable, ferroMemory, 1.8},
		{putSmall, runnelDurable, kinesaliteName, 20},
		{putSmall, runnelDurable, ferroMemory, 3},
		{getKiB, runnelDurable, kinesaliteName, 6},
		{getKiB, runnelDurable, ferroMemory, 1.5},
		{getSmall, runnelDurable, kinesaliteName, 15},
		{getSmall, runnelDurable, ferroMemory, 2.5},
		{putSingle8, runnelDurable, kinesaliteName, 1.5},
		{putSingle64, runnelDurable, kinesaliteName, 1.5},
		{putSingle8, runnelMemory, ferroMemory, 1},
		{putSingle64, runnelMemory, ferroMemory, 1},
		{putKiB, runnelDurable, ferroDurable, 30},
		{putSmall, runnelDurable, ferroDurable, 30},
		{putSingle8, runnelDurable, ferroDurable, 30},
		{putSingle64, runnelDurable, ferroDurable, 30},
		{update8, runnelDurable, dynaliteName, 3},
		{update64, runnelDurable, dynaliteName, 3},
		{firstAnswer, runnelDurable, "", 25},
		{idleMemory, runnelDurable, "", 30},
	}
}

// reached returns the figure to compare with the goal, and whether the goal is met. known is false
// if a figure is missing.
func (g goal) reached(m *measured, v via) (value float64, met, known bool) {
	if g.peer == "" {
		value, known = m.median(g.own, g.row, noClient)
		return value, value < g.value, known
	}
	value, known = m.ratio(g.own, g.peer, g.row, v)
	return value, value >= g.value, known
}
