package outbox

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/keyspace"
)

// intake decides which rows of the table go to the producer, and when. It knows the rows that are
// on their way, and how much of the buffer each key uses. It is a data structure without I/O, clock
// or goroutine, and safe for concurrent use.
//
// # Known rows
//
// A row is known from the moment when it is taken until its deletion has been committed and every
// read that began before has ended: such a read may still show the row. Reads follow one another
// (beginRead, endRead). A taken row is never taken again while it is known.
//
// # Bounds
//
// The buffer is divided among the 16 groups of the producer (the first four bits of a key's hash),
// so that rows of a slow shard never take the room of others. Within a group a key has at most half
// of the room. If a row has no room, the reader waits as long as the others are busy, and otherwise
// passes the key over: later rows of the key are left in the table, and it is remembered from which
// row on. When there is room again they are read by key and id.
//
// # Held keys
//
// A key is held if one of its rows cannot be put. Its rows stay in the table. Those that are in the
// producer come back (refuses), since a lane goes on behind a record that was not delivered.
type intake struct {
	mu       sync.Mutex
	bounds   bounds
	known    map[int64]knownRow
	keys     map[string]*keyState
	rows     int // taken and not deleted
	bytes    int
	groups   [groups]groupState
	overKeys int
	turn     int // the group that had the last turn
	heldKeys map[string]*keyState
	reads    int64     // reads begun
	reading  int       // reads that have not ended
	gone     []goneIDs // deleted rows that are still known, in the order of their reads
	lists    int64     // lists of the held keys begun
	lasts    recentIDs
	counts   counts
	roomy    chan struct{} // has a value after room was given back; capacity 1
}

// counts is the part of Stats that only grows.
type counts struct {
	sent, dead, inversions int64
}

const groups = 16

// bounds divides the buffer.
type bounds struct {
	groupRows, groupBytes int // of a group
	keyRows, keyBytes     int // of a key
	overKeys              int // the most keys that are passed over at a time
}

func newBounds(rows, bytes int) bounds {
	return bounds{
		groupRows: max(1, rows/groups), groupBytes: max(1, bytes/groups),
		keyRows: max(1, rows/groups/2), keyBytes: max(1, bytes/groups/2),
		overKeys: 100_000,
	}
}

type groupState struct {
	rows, bytes int
	over        []*keyState // the keys that are passed over, in the order of their turns
}

type knownRow struct {
	key     *keyState
	bytes   int32
	version uint32
	sum     uint32
	gone    bool // deleted, and perhaps still shown by a read
}

// goneIDs are rows that were deleted while so many reads had begun.
type goneIDs struct {
	reads int64
	ids   []int64
}

// keyState is a key with rows on their way, or one that is passed over or held.
type keyState struct {
	name        string
	hash        keyspace.Key
	group       int
	rows, bytes int

	over bool  // passed over; it is in the list of its group, or has its turn
	from int64 // over: the lowest row that was not taken

	held    bool
	refuses bool  // held: rows that are in the producer come back
	stored  int64 // held: 0, or the lists begun when the table of held keys had it
}

func newIntake(b bounds) *intake {
	return &intake{
		bounds: b, known: map[int64]knownRow{}, keys: map[string]*keyState{},
		heldKeys: map[string]*keyState{}, roomy: make(chan struct{}, 1), lasts: newRecentIDs(),
	}
}

// beginRead is called before each read of rows, and endRead when its rows have been handled. One
// read may be inside another.
func (n *intake) beginRead() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.reading == 0 && len(n.gone) > 0 && n.gone[0].reads <= n.reads {
		for _, id := range n.gone[0].ids {
			delete(n.known, id)
		}
		n.gone = n.gone[1:]
	}
	n.reads++
	n.reading++
}

func (n *intake) endRead() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reading--
}

// verdict is the intake's decision on a row.
type verdict int

const (
	leave verdict = iota // it is known, or its key is passed over or held
	take                 // it is taken now
	full                 // it has no room
)

// admit decides on a row of a window.
func (n *intake) admit(r *row) verdict {
	n.mu.Lock()
	defer n.mu.Unlock()
	same, other := n.knows(r)
	if same {
		return leave
	}
	k := n.keyOf(r)
	switch {
	case k.held:
		return leave
	case other:
		n.leaveFrom(k, lowest)
		return leave
	case k.over:
		n.leaveFrom(k, r.id)
		return leave
	}
	return n.takeIfRoom(k, r)
}

// isNew reports whether admit would not leave a row.
func (n *intake) isNew(r *row) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if same, other := n.knows(r); same || other {
		return false
	}
	k := n.keys[r.key]
	return k == nil || !k.held && !k.over
}

// knows reports whether a row is known, or whether its id is known under another version. The row
// is then another one with the same id, or the same one, rewritten. It has to wait until the known
// one was deleted and a read has begun after that, and so have the later rows of its key.
func (n *intake) knows(r *row) (same, other bool) {
	known, ok := n.known[r.id]
	return ok && known.version == r.version, ok && known.version != r.version
}

func (n *intake) takeIfRoom(k *keyState, r *row) verdict {
	size, g := r.size(), &n.groups[k.group]
	if !fits(k.rows, k.bytes, size, n.bounds.keyRows, n.bounds.keyBytes) ||
		!fits(g.rows, g.bytes, size, n.bounds.groupRows, n.bounds.groupBytes) {
		n.dropIfIdle(k)
		return full
	}
	n.enter(k, r, size)
	if n.lasts.note(k.hash.Lo, r.id) {
		n.counts.inversions++
	}
	return take
}

// fits reports whether one more row has room. A row that is larger than the whole room has it
// alone.
func fits(rows, bytes, size, mostRows, mostBytes int) bool {
	return rows == 0 || rows < mostRows && bytes+size <= mostBytes
}

func (n *intake) enter(k *keyState, r *row, size int) {
	n.known[r.id] = knownRow{key: k, bytes: int32(size), version: r.version, sum: checksum(r)}
	g := &n.groups[k.group]
	k.rows, g.rows, n.rows = k.rows+1, g.rows+1, n.rows+1
	k.bytes, g.bytes, n.bytes = k.bytes+size, g.bytes+size, n.bytes+size
}

// resume takes a row of a unit of an earlier owner, whatever room there is.
func (n *intake) resume(r *row) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.keyOf(r)
	n.enter(k, r, r.size())
	n.lasts.note(k.hash.Lo, r.id)
}

// key returns the state of a key, which is new if the key has none. The caller holds mu, and
// calls dropIfIdle if it leaves a new state as it is.
func (n *intake) key(name string) *keyState {
	k := n.keys[name]
	if k == nil {
		k = &keyState{name: name, hash: keyspace.Of(name)}
		k.group = int(k.hash.Hi >> 60)
		n.keys[name] = k
	}
	return k
}

// keyOf is key for a row. The group of a new key is that of the row's explicit hash key.
func (n *intake) keyOf(r *row) *keyState {
	if k := n.keys[r.key]; k != nil {
		return k
	}
	k := n.key(r.key)
	if hash, err := keyspace.Parse(r.hash); err == nil {
		k.group = int(hash.Hi >> 60)
	}
	return k
}

func (n *intake) dropIfIdle(k *keyState) {
	if k.rows == 0 && !k.over && !k.held {
		delete(n.keys, k.name)
	}
}

// passOver passes a row's key over, if another group has little to do or the row has waited for
// long. It returns false if the reader is to wait.
func (n *intake) passOver(r *row, late bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.keyOf(r)
	if !late && !n.idle(k.group) || n.overKeys >= n.bounds.overKeys {
		n.dropIfIdle(k)
		return false
	}
	n.leaveFrom(k, r.id)
	return true
}

// idle reports whether another group has little to do. Under an even load all groups are nearly
// full. A group that is behind a slow shard stays full while the others run dry.
func (n *intake) idle(but int) bool {
	for i := range n.groups {
		g := &n.groups[i]
		if i != but && g.rows <= n.bounds.groupRows/4 && g.bytes <= n.bounds.groupBytes/4 {
			return true
		}
	}
	return false
}

// leaveFrom passes a key over from a row on.
func (n *intake) leaveFrom(k *keyState, from int64) {
	if k.over {
		k.from = min(k.from, from)
		return
	}
	k.over, k.from = true, from
	n.overKeys++
	g := &n.groups[k.group]
	g.over = append(g.over, k)
}

// restart lets keys that were passed over begin with their first row: ids are drawn again.
func (n *intake) restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.keys {
		if k.over {
			k.from = lowest
		}
	}
}

// missed is called for a row that a window below the low mark has found.
func (n *intake) missed(r *row) (unknown bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if same, _ := n.knows(r); same {
		return false
	}
	k := n.keyOf(r)
	if k.held {
		return false
	}
	// The key is read from its first row on, since these windows have different snapshots.
	if k.over || n.overKeys < n.bounds.overKeys { // otherwise a later sweep finds it
		n.leaveFrom(k, lowest)
	} else {
		n.dropIfIdle(k)
	}
	return true
}

// skipped returns up to `most` keys of which windows need no rows.
func (n *intake) skipped(most int) (keys []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name := range n.heldKeys {
		if sendable(name) && len(keys) < most/2 {
			keys = append(keys, name)
		}
	}
	for i := range n.groups {
		for _, k := range n.groups[i].over {
			if len(keys) >= most {
				return keys
			}
			if sendable(k.name) {
				keys = append(keys, k.name)
			}
		}
	}
	return keys
}

// sendable reports whether every database takes a key as it is in a statement.
func sendable(key string) bool {
	return key != "" && utf8.ValidString(key) && !strings.ContainsRune(key, 0)
}

// turns returns the places of some keys that were passed over and have room again, all of one
// group, and the most rows for each. The caller calls endTurn for each of them.
func (n *intake) turns(most int) (places []place, rows int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range groups {
		n.turn = (n.turn + 1) % groups
		g := &n.groups[n.turn]
		crowded := g.rows > n.bounds.groupRows*3/4 || g.bytes > n.bounds.groupBytes*3/4
		if len(g.over) == 0 || crowded {
			continue
		}
		var later []*keyState
		for len(g.over) > 0 && len(places) < most && len(later) < 10*most {
			k := g.over[0]
			g.over = g.over[1:]
			if k.held { // its release passes it over again
				k.over = false
				n.overKeys--
				continue
			}
			if k.rows > n.bounds.keyRows/2 || k.bytes > n.bounds.keyBytes/2 {
				later = append(later, k)
				continue
			}
			places = append(places, place{k.name, k.from})
		}
		g.over = append(g.over, later...)
		if len(places) > 0 {
			return places, max(1, (n.bounds.groupRows-g.rows)/len(places))
		}
	}
	return nil, 0
}

// admitTurn decides on a row of a key that was passed over and has its turn.
func (n *intake) admitTurn(r *row) verdict {
	n.mu.Lock()
	defer n.mu.Unlock()
	same, other := n.knows(r)
	if same {
		return leave
	}
	k := n.keyOf(r)
	switch {
	case k.held:
		return leave
	case other:
		return full
	}
	return n.takeIfRoom(k, r)
}

// endTurn ends the turn of a key. next is the lowest row that was not taken; done means that there
// is none.
func (n *intake) endTurn(at place, next int64, done bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.keys[at.key]
	if k.from < at.from { // a lower row was found meanwhile
		next, done = k.from, false
	}
	if done {
		k.over = false
		n.overKeys--
		n.dropIfIdle(k)
		return
	}
	k.from = next
	g := &n.groups[k.group]
	g.over = append(g.over, k)
}

// named returns the names of rows that are on their way.
func (n *intake) named(ids []int64) []rowID {
	n.mu.Lock()
	defer n.mu.Unlock()
	rows := make([]rowID, len(ids))
	for i, id := range ids {
		rows[i] = rowID{id, n.known[id].version, n.known[id].sum}
	}
	return rows
}

// deleted is called when the deletion of rows was committed. They were sent, or became dead
// letters.
func (n *intake) deleted(rows []rowID, dead bool) {
	if len(rows) == 0 {
		return
	}
	ids := make([]int64, len(rows))
	n.mu.Lock()
	for i := range rows {
		id := rows[i].id
		ids[i] = id
		r, known := n.known[id]
		if !known || r.gone {
			continue
		}
		n.release(r)
		r.key, r.gone = nil, true
		n.known[id] = r
	}
	n.gone = append(n.gone, goneIDs{n.reads, ids})
	if dead {
		n.counts.dead += int64(len(ids))
	} else {
		n.counts.sent += int64(len(ids))
	}
	n.mu.Unlock()
	n.wake()
}

// putBack forgets rows that were taken: they were not delivered, and their key is held.
func (n *intake) putBack(ids []int64) {
	n.mu.Lock()
	for _, id := range ids {
		if r, known := n.known[id]; known && !r.gone {
			delete(n.known, id)
			n.release(r)
		}
	}
	n.mu.Unlock()
	n.wake()
}

func (n *intake) release(r knownRow) {
	size, g := int(r.bytes), &n.groups[r.key.group]
	r.key.rows, g.rows, n.rows = r.key.rows-1, g.rows-1, n.rows-1
	r.key.bytes, g.bytes, n.bytes = r.key.bytes-size, g.bytes-size, n.bytes-size
	n.dropIfIdle(r.key)
}

// wake wakes a reader that waits for room.
func (n *intake) wake() {
	select {
	case n.roomy <- struct{}{}:
	default:
	}
}

// hold holds a key. With refuses its rows in the producer come back.
func (n *intake) hold(name string, refuses bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.key(name)
	k.held, k.refuses, k.stored = true, k.refuses || refuses, 0
	n.lasts.forget(k.hash.Lo) // its rows come again
	n.heldKeys[name] = k
}

// refuses reports whether rows of a key come back.
func (n *intake) refuses(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.keys[name]
	return k != nil && k.refuses
}

// holdStored is called when the table of held keys has a key.
func (n *intake) holdStored(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.keys[name]; k != nil && k.held {
		k.stored = max(n.lists, 1)
	}
}

// beginList is called before the table of held keys is read.
func (n *intake) beginList() (list int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lists++
	return n.lists
}

// endList takes the held keys of a list. A key that is no longer there was released: its rows are
// read from the table, as soon as none of them is on its way.
func (n *intake) endList(list int64, held []HeldKey) {
	there := make(map[string]bool, len(held))
	for _, h := range held {
		there[h.Key] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, k := range n.heldKeys {
		if !there[name] && k.stored > 0 && k.stored < list && k.rows == 0 {
			k.held, k.refuses, k.stored = false, false, 0
			delete(n.heldKeys, name)
			n.leaveFrom(k, lowest)
		}
	}
	for name := range there {
		if k := n.key(name); k.stored == 0 { // by this relay, an earlier owner, or by hand
			k.held, k.stored = true, list
			n.heldKeys[name] = k
		}
	}
}

// fewKnown returns the known rows, or none if they are many.
func (n *intake) fewKnown() (ids []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) > 1000 {
		return nil
	}
	return slices.Collect(maps.Keys(n.known))
}

// countHeld returns the number of held keys.
func (n *intake) countHeld() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.heldKeys)
}

// mostKnown bounds the memory of inversions.
const mostKnown = 1 << 17

// recentIDs has the highest id of each key that had rows lately: of at least mostKnown keys.
type recentIDs struct {
	now, before map[uint64]int64 // by the hash of the key
}

func newRecentIDs() recentIDs { return recentIDs{now: map[uint64]int64{}} }

// note notes a row of a key, and reports whether a later row of the key was noted before.
func (r *recentIDs) note(hash uint64, id int64) (inverted bool) {
	last, known := r.now[hash]
	if !known {
		last = r.before[hash]
		if len(r.now) >= mostKnown {
			r.before, r.now = r.now, map[uint64]int64{}
		}
	}
	if id < last {
		r.now[hash] = last
		return true
	}
	r.now[hash] = id
	return false
}

// quiet reports whether no row is on its way, except for stuck ones, and no key is passed over.
func (n *intake) quiet(stuck int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rows <= stuck && n.overKeys == 0
}

// forget forgets the rows of a key.
func (r *recentIDs) forget(hash uint64) {
	delete(r.now, hash)
	delete(r.before, hash)
}
