package lease_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// scenario is one of testdata/fleet.json. A member is "name", with the words java, leaving or
// max=N after it. A row is "key owner", with "-" for none, and the words silent, blocked, ended,
// pinned or before=WORKER after it. A move is "take key to", or "pass key from to", or "rob …".
type scenario struct {
	Name    string   `json:"name"`
	Why     string   `json:"why"`
	Members []string `json:"members"`
	Rows    []string `json:"rows"`
	Shares  string   `json:"shares"`
	Moves   []string `json:"moves"`
	// Unclaimed are the leases that wait for a worker with room; most scenarios have none.
	Unclaimed []runnel.ShardID `json:"unclaimed"`
}

func (s scenario) view(t *testing.T) lease.View {
	t.Helper()
	var v lease.View
	for _, text := range s.Members {
		words := strings.Fields(text)
		m := lease.Member{Name: words[0]}
		for _, word := range words[1:] {
			most, isMax := strings.CutPrefix(word, "max=")
			switch {
			case word == "java":
				m.Java = true
			case word == "leaving":
				m.Leaving = true
			case isMax:
				m.MaxLeases, _ = strconv.Atoi(most)
			default:
				t.Fatalf("member %q", text)
			}
		}
		v.Members = append(v.Members, m)
	}
	for _, text := range s.Rows {
		words := strings.Fields(text)
		r := lease.Row{Key: runnel.ShardID(words[0])}
		if words[1] != "-" {
			r.Owner = words[1]
		}
		for _, word := range words[2:] {
			before, isBefore := strings.CutPrefix(word, "before=")
			switch {
			case word == "silent":
				r.Silent = true
			case word == "blocked":
				r.Ready = lease.Blocked
			case word == "ended":
				r.Ready = lease.Ended
			case word == "pinned":
				r.Pinned = true
			case isBefore:
				r.Before = append(r.Before, before)
			default:
				t.Fatalf("row %q", text)
			}
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

func showMoves(p lease.FleetPlan) []string {
	moves := make([]string, 0, len(p.Moves))
	for _, m := range p.Moves {
		text := fmt.Sprintf("%s %s %s %s", m.Kind, m.Key, m.From, m.To)
		moves = append(moves, strings.Join(strings.Fields(text), " "))
	}
	return moves
}

func showShares(p lease.FleetPlan) string {
	var shares []string
	for _, name := range slices.Sorted(maps.Keys(p.Shares)) {
		shares = append(shares, fmt.Sprintf("%s=%d", name, p.Shares[name]))
	}
	return strings.Join(shares, " ")
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	text, err := os.ReadFile("testdata/fleet.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The scenarios of testdata/fleet.json: small fleets with their plans and reasons.
func TestPlanScenarios(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			if s.Why == "" {
				t.Error("it does not say why")
			}
			v := s.view(t)
			p := v.Plan()
			if got := showMoves(p); !slices.Equal(got, s.Moves) {
				t.Errorf("moves %q, want %q", got, s.Moves)
			}
			if !slices.Equal(p.Unclaimed, s.Unclaimed) {
				t.Errorf("unclaimed %q, want %q", p.Unclaimed, s.Unclaimed)
			}
			if got := showShares(p); got != s.Shares {
				t.Errorf("shares %q, want %q", got, s.Shares)
			}
			checkPlan(t, v, rand.New(rand.NewPCG(1, 1)))
		})
	}
}

// checkPlan checks a plan's general properties: it does not depend on the order of the view, it
// moves each lease at most once, it keeps within the limits, no lease waits while a worker has
// room, those that wait are named, and the plan after it is empty but for robberies, which come to an end.
func checkPlan(t *testing.T, v lease.View, random *rand.Rand) {
	t.Helper()
	p := v.Plan()
	shuffled := lease.View{Rows: slices.Clone(v.Rows), Members: slices.Clone(v.Members)}
	random.Shuffle(len(v.Rows), func(i, j int) {
		shuffled.Rows[i], shuffled.Rows[j] = shuffled.Rows[j], shuffled.Rows[i]
	})
	random.Shuffle(len(v.Members), func(i, j int) {
		shuffled.Members[i], shuffled.Members[j] = shuffled.Members[j], shuffled.Members[i]
	})
	if again := shuffled.Plan(); fmt.Sprint(again) != fmt.Sprint(p) {
		t.Fatalf("%+v\nplanned as %+v\nand, in another order, as %+v", v, p, again)
	}
	moved := map[runnel.ShardID]bool{}
	for _, m := range p.Moves {
		to := v.Members[slices.IndexFunc(v.Members, func(o lease.Member) bool { return o.Name == m.To })]
		if moved[m.Key] || m.From == m.To || to.Java || to.Leaving {
			t.Fatalf("%+v\nhas the move %+v", v, m)
		}
		moved[m.Key] = true
	}
	for _, r := range v.Rows {
		_, waits := slices.BinarySearch(p.Unclaimed, r.Key)
		idle := r.Owner == "" && !r.Given && r.Ready == lease.Readable
		if waits != (idle && !moved[r.Key]) {
			t.Fatalf("%+v\nof the unclaimed leases %q, %s", v, p.Unclaimed, r.Key)
		}
	}
	for robberies := 0; ; robberies++ {
		v = after(v, p)
		checkRoom(t, v)
		if p = v.Plan(); len(p.Moves) == 0 {
			return
		}
		for _, m := range p.Moves {
			if m.Kind != lease.MoveRob {
				t.Fatalf("%+v\nwas planned, and still has the move %+v", v, m)
			}
		}
		if robberies > len(v.Rows) {
			t.Fatalf("%+v\nrobberies do not end", v)
		}
	}
}

// after returns the view after all moves of a plan.
func after(v lease.View, p lease.FleetPlan) lease.View {
	next := lease.View{Rows: slices.Clone(v.Rows), Members: v.Members}
	for _, m := range p.Moves {
		i := slices.IndexFunc(next.Rows, func(r lease.Row) bool { return r.Key == m.Key })
		next.Rows[i].Owner, next.Rows[i].Silent, next.Rows[i].Pinned = m.To, false, false
	}
	return next
}

// checkRoom fails if a readable lease has no owner though a worker has room, or if a worker of this
// package is filled beyond its limit.
func checkRoom(t *testing.T, v lease.View) {
	t.Helper()
	held := map[string]int{}
	for _, r := range v.Rows {
		if r.Ready != lease.Ended {
			held[r.Owner]++
		}
	}
	for _, r := range v.Rows {
		if r.Owner != "" || r.Ready != lease.Readable {
			continue
		}
		for _, m := range v.Members {
			if !m.Java && !m.Leaving && (m.MaxLeases == 0 || held[m.Name] < m.MaxLeases) {
				t.Fatalf("%+v\n%s waits, and %s has room", v, r.Key, m.Name)
			}
		}
	}
}

// soak returns the factor for the size of random tests.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// randomView returns a fleet in some state.
func randomView(r *rand.Rand, java bool) lease.View {
	var v lease.View
	for n := range 1 + r.IntN(6) {
		m := lease.Member{Name: fmt.Sprintf("w%d", n), Java: java && r.IntN(3) == 0}
		if r.IntN(4) == 0 {
			m.MaxLeases = 1 + r.IntN(6)
		}
		m.Leaving = r.IntN(6) == 0 && !m.Java
		v.Members = append(v.Members, m)
	}
	for n := range r.IntN(25) {
		row := lease.Row{Key: runnel.ShardID(fmt.Sprintf("s%02d", n))}
		if i := r.IntN(len(v.Members) + 1); i < len(v.Members) {
			row.Owner = v.Members[i].Name
			row.Pinned = r.IntN(8) == 0
		}
		row.Silent = row.Owner == "" && r.IntN(2) == 0
		row.Ready = []lease.Readiness{
			lease.Readable, lease.Readable, lease.Readable, lease.Blocked, lease.Ended,
		}[r.IntN(5)]
		if row.Ready == lease.Ended && !isJava(v, row.Owner) {
			row.Owner = "" // workers of this package leave an ended lease
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func isJava(v lease.View, name string) bool {
	return slices.ContainsFunc(v.Members, func(m lease.Member) bool { return m.Name == name && m.Java })
}

// Plans of random fleets have the general properties.
func TestPlanProperties(t *testing.T) {
	for seed := range 2000 * soak() {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		checkPlan(t, randomView(r, seed%2 == 0), r)
	}
}

// Without Java workers and limits the plan makes the fewest moves that even the shares: the leases
// above the shares that fit the present loads best.
func TestPlanMovesFew(t *testing.T) {
	for seed := range 500 * soak() {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		var v lease.View
		workers, rows := 1+r.IntN(6), r.IntN(30)
		held := make([]int, workers)
		for n := range workers {
			v.Members = append(v.Members, lease.Member{Name: fmt.Sprintf("w%d", n)})
		}
		for n := range rows {
			i := r.IntN(workers)
			held[i]++
			v.Rows = append(v.Rows, lease.Row{
				Key: runnel.ShardID(fmt.Sprintf("s%02d", n)), Owner: v.Members[i].Name,
			})
		}
		// The workers that hold most keep one more.
		slices.SortFunc(held, func(a, b int) int { return b - a })
		least := 0
		for i, n := range held {
			share := rows / workers
			if i < rows%workers {
				share++
			}
			least += max(0, n-share)
		}
		if got := len(v.Plan().Moves); got != least {
			t.Fatalf("%d moves, want %d: %+v", got, least, v)
		}
	}
}

// One change of a fleet at rest moves each lease at most once: the plan after the moves is empty,
// which checkPlan shows. And it moves no lease between two workers that the change does not
// concern.
func TestPlanAfterOneChange(t *testing.T) {
	for seed := range 500 * soak() {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		v := randomView(r, false)
		for i := range v.Members {
			v.Members[i].Leaving, v.Members[i].MaxLeases = false, 0
		}
		for i := range v.Rows {
			v.Rows[i].Pinned = false
		}
		v = after(v, v.Plan())
		changed := ""
		switch r.IntN(3) {
		case 0:
			changed = "new"
			v.Members = append(slices.Clone(v.Members), lease.Member{Name: changed})
		case 1:
			i := r.IntN(len(v.Members))
			changed, v.Members[i].Leaving = v.Members[i].Name, true
		default:
			i := r.IntN(len(v.Members))
			changed = v.Members[i].Name
			v.Members = slices.Delete(slices.Clone(v.Members), i, i+1)
			for n := range v.Rows {
				if v.Rows[n].Owner == changed {
					v.Rows[n].Owner, v.Rows[n].Silent = "", true
				}
			}
		}
		if len(v.Members) == 0 {
			continue
		}
		for _, m := range v.Plan().Moves {
			if m.Kind != lease.MoveTake && m.From != changed && m.To != changed {
				t.Fatalf("%s changed, and %+v moves", changed, m)
			}
		}
		checkPlan(t, v, r)
	}
}

// Beside the taker of KCL 2.x (spec: DynamoDBLeaseTaker) the fleet comes to rest, and nothing moves
// then.
func TestPlanBesideJava(t *testing.T) {
	for seed := range 300 * soak() {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		v := randomView(r, true)
		for i := range v.Members {
			v.Members[i].Leaving, v.Members[i].MaxLeases = false, 0
		}
		for i := range v.Rows {
			v.Rows[i].Pinned = false
			if v.Rows[i].Ready == lease.Blocked {
				v.Rows[i].Owner = ""
			}
		}
		quiet := 0
		for step := 0; quiet < 3; step++ {
			before := fmt.Sprint(v.Rows)
			v = after(v, v.Plan())
			for _, m := range v.Members {
				if m.Java {
					v = javaTakes(v, m.Name, r)
				}
			}
			if quiet++; fmt.Sprint(v.Rows) != before {
				quiet = 0
			}
			if step > 200 {
				t.Fatalf("seed %d: no rest: %+v", seed, v)
			}
		}
	}
}

// javaTakes is one turn of a Java worker: it fills up to ceil(leases / owners) with leases that
// have no owner, and otherwise robs the most loaded worker of one. It counts ended leases.
func javaTakes(v lease.View, me string, r *rand.Rand) lease.View {
	v.Rows = slices.Clone(v.Rows)
	held := map[string]int{me: 0}
	var free []int
	for i, row := range v.Rows {
		if row.Owner == "" {
			free = append(free, i)
		} else {
			held[row.Owner]++
		}
	}
	target := (len(v.Rows) + len(held) - 1) / len(held)
	need := target - held[me]
	if need <= 0 {
		return v
	}
	if len(free) > 0 {
		r.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		for _, i := range free[:min(need, len(free))] {
			v.Rows[i].Owner, v.Rows[i].Silent = me, false
		}
		return v
	}
	most := ""
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if name != me && (most == "" || held[name] > held[most]) {
			most = name
		}
	}
	if most == "" || held[most] < target || held[most] == target && need <= 1 {
		return v
	}
	var loot []int
	for i, row := range v.Rows {
		if row.Owner == most {
			loot = append(loot, i)
		}
	}
	v.Rows[loot[r.IntN(len(loot))]].Owner = me
	return v
}
