package lease

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
)

// Sighting is a lease as it was last read, with the time of its counter's last change by the
// observer's own clock.
type Sighting struct {
	Lease
	// Changed is the time at which the observer first saw this counter. The change itself is older.
	// So if an owner drops its lease one failover time after its last write, it has dropped it
	// before that time has passed since Changed.
	Changed time.Time
	// AskChanged is the time at which the observer first saw this ask; zero if there is none.
	AskChanged time.Time
}

// Expired reports whether the lease has an owner that has not changed the counter for longer than
// the failover time, or for longer than a static worker may be away.
func (s Sighting) Expired(now time.Time, failover time.Duration) bool {
	if s.Owned() {
		failover = max(failover, s.Static.Absence)
	}
	return s.Owner != "" && now.Sub(s.Changed) > failover
}

// Watch finds out which workers are alive. It only compares counters, asks and cards with their own
// earlier values, over time measured on one machine. The zero value has seen nothing. It is used by
// one goroutine.
type Watch struct {
	seen  map[runnel.ShardID]Sighting
	cards map[place]cardSighting
	alive map[string]bool
}

// place is the place of a card. A worker whose writes fail may leave several cards behind.
type place struct {
	worker string
	key    runnel.ShardID
}

type cardSighting struct {
	Card
	changed time.Time
}

// Update takes a complete list of the leases, read before now, and returns a Sighting of each, in
// the list's order. It forgets leases and cards that are not listed.
func (w *Watch) Update(now time.Time, leases []Lease) []Sighting {
	view := make([]Sighting, len(leases))
	next := make(map[runnel.ShardID]Sighting, len(leases))
	cards := map[place]cardSighting{}
	alive := map[string]bool{}
	first := w.seen == nil
	for i, l := range leases {
		s := w.sight(now, l)
		view[i], next[l.Key] = s, s
		if _, own := l.LifeOf(l.Owner); own {
			alive[l.Owner] = alive[l.Owner] || w.alive[l.Owner] || !first && s.Changed.Equal(now)
		}
		for worker, card := range l.Cards {
			at := place{worker, l.Key}
			c := cardSighting{Card: card, changed: now}
			if before, known := w.cards[at]; known && before.Card == card {
				c = before
			}
			cards[at] = c
			alive[worker] = alive[worker] || w.alive[worker] || !first && c.changed.Equal(now)
		}
	}
	w.seen, w.cards, w.alive = next, cards, alive
	return view
}

// Alive reports whether the Watch has seen a row or a card of a worker change, and so knows that it
// has lived since the first Update. A member of the View whose rows are older may have died before.
func (w *Watch) Alive(worker string) bool { return w.alive[worker] }

func (w *Watch) sight(now time.Time, l Lease) Sighting {
	s := Sighting{Lease: l, Changed: now}
	before, known := w.seen[l.Key]
	if known && before.Counter == l.Counter && before.Owner == l.Owner {
		s.Changed = before.Changed
	}
	if l.Ask.Worker != "" {
		s.AskChanged = now
		if known && before.askText == l.askText {
			s.AskChanged = before.AskChanged
		}
	}
	return s
}

// View returns the fleet according to the rows of the last Update: its live workers and the holders
// of the leases. Only a worker's own writes show its life: a lease that was passed to it shows that
// of the worker before.
func (w *Watch) View(now time.Time, failover time.Duration) View {
	members := map[string]Member{}
	for at, card := range w.cards {
		if now.Sub(card.changed) > failover {
			continue
		}
		m := members[at.worker]
		m.Name, m.MaxLeases = at.worker, max(m.MaxLeases, card.MaxLeases)
		m.Leaving = m.Leaving || card.Leaving
		members[at.worker] = m
	}
	view := View{Rows: make([]Row, 0, len(w.seen))}
	for _, key := range slices.SortedFunc(maps.Keys(w.seen), cmp.Compare) {
		s := w.seen[key]
		row := Row{Key: key, Ready: w.readiness(s.Lease), Before: w.enders(s.Lease)}
		switch {
		case s.Owner == "":
		case s.Expired(now, failover):
			row.Silent = true
		default:
			row.Owner, row.Pinned, row.Given = s.Owner, s.Pin == s.Owner, s.Passed()
			if !row.Given {
				members[s.Owner] = s.join(members[s.Owner])
			}
		}
		view.Rows = append(view.Rows, row)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		view.Members = append(view.Members, members[name])
	}
	return view
}

// join adds what the row says of its owner to what is known of it.
func (s Sighting) join(m Member) Member {
	m.Java = !s.Owned() && (m.Name == "" || m.Java)
	m.Name = s.Owner
	if s.Owned() {
		m.MaxLeases = max(m.MaxLeases, s.MaxLeases)
	}
	return m
}

func (w *Watch) readiness(l Lease) Readiness {
	if l.Ended() {
		return Ended
	}
	for _, id := range l.Parents {
		if parent, there := w.seen[id]; there && !parent.Ended() {
			return Blocked
		}
	}
	return Readable
}

// enders returns the workers that ended the parents.
func (w *Watch) enders(l Lease) []string {
	var names []string
	for _, id := range l.Parents {
		if name := w.seen[id].Ender; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Seen returns the lease as the last Update saw it.
func (w *Watch) Seen(key runnel.ShardID) (Sighting, bool) {
	s, there := w.seen[key]
	return s, there
}

// Leases returns the leases of the last Update, in the order of their keys.
func (w *Watch) Leases() []Lease {
	leases := make([]Lease, 0, len(w.seen))
	for _, key := range slices.SortedFunc(maps.Keys(w.seen), cmp.Compare) {
		leases = append(leases, w.seen[key].Lease)
	}
	return leases
}

// LifeOf returns a row by which a worker shows its life, and the mark that it raises there: the
// counter of a lease that it holds, or the beat of its card. ok is false if there is none.
func (w *Watch) LifeOf(worker string) (key runnel.ShardID, mark int64, ok bool) {
	var rows []Lease
	for _, l := range w.Leases() {
		if _, there := l.LifeOf(worker); there {
			rows = append(rows, l)
		}
	}
	if len(rows) == 0 {
		return "", 0, false
	}
	l := rows[rand.IntN(len(rows))]
	mark, _ = l.LifeOf(worker)
	return l.Key, mark, true
}

// LifeOf returns the mark by which a worker shows its life in this row; ok is false if it does not.
// A row that was passed to it does not, since another worker has written it.
func (l Lease) LifeOf(worker string) (mark int64, ok bool) {
	if l.Owner == worker && worker != "" && !l.Passed() {
		return l.Counter, true
	}
	card, ok := l.Cards[worker]
	return card.Beat, ok
}

// DeadCard is a card that its worker raises no more, and the row that has it.
type DeadCard struct {
	Worker string // the name on the card
	Card   Card   // as it was last seen
	On     Lease  // the row
}

// DeadCards returns the cards that have not changed for longer than age.
func (w *Watch) DeadCards(now time.Time, age time.Duration) []DeadCard {
	var dead []DeadCard
	for at, c := range w.cards {
		if now.Sub(c.changed) > age {
			dead = append(dead, DeadCard{Worker: at.worker, Card: c.Card, On: w.seen[at.key].Lease})
		}
	}
	return dead
}
