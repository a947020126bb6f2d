package interop

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/dynamolocaltest"
)

// soak multiplies the size of the random tests.
func soak() int {
	n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// rivals are two endpoints that must give the same answers.
type rivals struct {
	t            *testing.T
	ours, theirs *dynamo
	asked        int
	items        map[string][]object // the tables' items, by table
	found        map[string]*difference
}

// difference is one kind of difference, with the first request that showed it.
type difference struct {
	kind    string // the operation and the two answers, in short
	seed    uint64
	times   int
	request request
	before  map[string][]object // the items of the tables
	answers pair
}

// TestDynamoDBLocal sends the same random requests to runnel and to Amazon's DynamoDB Local. Both
// must give the same answers and have the same items after each request. knownDifferences has the
// permitted differences with their reasons; pair.same has those of messages.
func TestDynamoDBLocal(t *testing.T) {
	if os.Getenv("RUNNEL_INTEROP") == "" {
		t.Skip("make interop installs DynamoDB Local and runs this")
	}
	t.Parallel() // beside the KCL's fleets, which mostly wait
	p, local := serve(t), dynamolocaltest.New(t).Addr
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	r := &rivals{
		t: t, items: map[string][]object{}, found: map[string]*difference{},
		ours:   &dynamo{"runnel", p.addr, client},
		theirs: &dynamo{"DynamoDB Local", local, client},
	}
	for _, table := range tables {
		if got := r.ask("CreateTable", table); got.ours.code != "" || got.theirs.code != "" {
			t.Fatalf("%s\n%s", got.ours, got.theirs)
		}
	}
	for seed := range uint64(soak()) {
		for _, table := range tableNames {
			r.empty(table)
		}
		d := &draw{Rand: rand.New(rand.NewPCG(seed, 0))}
		for range 2000 {
			r.check(seed, d.request(), d.in(10))
		}
	}
	t.Logf("soak: %d seeds, %d operations", soak(), r.asked)
	for _, one := range r.found {
		r.shrink(one)
		t.Errorf("seed %d, %d times: %s\nrequest: %s %s\nitems before: %s\n"+
			"runnel:         %s\nDynamoDB Local: %s\n", one.seed, one.times, one.kind,
			one.request.operation, shown(one.request.body), shown(one.before),
			one.answers.ours, one.answers.theirs)
	}
}

// ask sends a request to both endpoints at the same time.
func (r *rivals) ask(operation string, body object) pair {
	var p pair
	var errs [2]error
	var group sync.WaitGroup
	ctx := r.t.Context()
	group.Go(func() { p.ours, errs[0] = r.ours.ask(ctx, operation, body) })
	p.theirs, errs[1] = r.theirs.ask(ctx, operation, body)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			r.t.Fatalf("%s %.2000s: %v", operation, shown(body), err)
		}
	}
	r.asked++
	numbersAsServed(p.theirs.body)
	return p
}

// check sends a request to both endpoints and compares the answers and the items afterwards. After
// a refused request it compares the items only if look is set.
func (r *rivals) check(seed uint64, q request, look bool) {
	before := map[string][]object{}
	for _, table := range tableNames {
		before[table] = r.items[table]
	}
	got := r.answer(q)
	if !got.same() && !known(q, got) {
		r.note(seed, q, before, got)
	}
	reads := q.operation == "Query" || q.operation == "Scan" || q.operation == "GetItem"
	if reads || got.ours.code != "" && got.theirs.code != "" && !look {
		return
	}
	for _, table := range tableNames {
		if q.table != "" && q.table != table {
			continue
		}
		left := r.scan(table)
		if left.same() {
			r.items[table] = left.items()[0]
			continue
		}
		if got.same() && !knownState(q, left) {
			r.note(seed, q, before, left)
		}
		r.empty(table)
	}
}

// scan returns a table's items of both endpoints.
func (r *rivals) scan(table string) pair {
	p := r.ask("Scan", object{"TableName": table, "ConsistentRead": true})
	return pair{p.ours.canonical(true), p.theirs.canonical(true)}
}

// items returns the items of both.
func (p pair) items() [2][]object {
	var both [2][]object
	for i, r := range []reply{p.ours, p.theirs} {
		list, _ := r.body["Items"].([]any)
		for _, one := range list {
			if item, ok := one.(object); ok {
				both[i] = append(both[i], item)
			}
		}
	}
	return both
}

// empty deletes all items of a table at both endpoints.
func (r *rivals) empty(table string) {
	for _, items := range r.scan(table).items() {
		for _, item := range items {
			key := object{"k": item["k"]}
			if table != hashTable {
				key["r"] = item["r"]
			}
			r.ask("DeleteItem", object{"TableName": table, "Key": key})
		}
	}
	r.items[table] = nil
}

// note keeps the first difference of each kind.
func (r *rivals) note(seed uint64, q request, before map[string][]object, got pair) {
	kind := q.operation + " | " + short(got.ours) + " | " + short(got.theirs)
	if r.found[kind] == nil {
		r.found[kind] = &difference{
			kind: kind, seed: seed, request: q, before: before, answers: got,
		}
	}
	r.found[kind].times++
}

// short returns an answer's code and the first words of its message.
func short(r reply) string {
	if r.code == "" {
		return "ok"
	}
	message := r.message
	for _, cut := range []string{": ", "; "} {
		if i := strings.LastIndex(message, cut); i > 30 {
			message = message[:i]
		}
	}
	return fmt.Sprintf("%s: %.100s", r.code, message)
}
