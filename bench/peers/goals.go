package main

// goal is what runnel is to reach in a row: as a multiple of a peer, or below a limit.
type goal struct {
	row   row
	own   string  // which runnel
	peer  string  // "": the figure itself, which must be below
	value float64 // at least so many times the peer, or below so much
}

// goals are those of the rows here; bench/README.md names where the others are measured.
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

// reached returns what stands against the goal, with whether it is met; known is false if
// something of it was not measured.
func (g goal) reached(m *measured, v via) (value float64, met, known bool) {
	if g.peer == "" {
		value, known = m.median(g.own, g.row, noClient)
		return value, value < g.value, known
	}
	value, known = m.ratio(g.own, g.peer, g.row, v)
	return value, value >= g.value, known
}
