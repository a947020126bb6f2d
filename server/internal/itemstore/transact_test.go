package itemstore

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// give is a Decide that returns the item.
func give(item Item) func(Item) (Item, error) {
	return func(Item) (Item, error) { return item, nil }
}

func TestTransact(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	one, two := b.create(t, "one", byID), b.create(t, "two", byID)
	gone := b.create(t, "gone", byID)
	if _, err := b.DropTable(t.Context(), gone, func(Stats) error { return nil }); err != nil {
		t.Fatal(err)
	}
	a := Item{"id": String("a"), "v": NumberOf(1)}
	b.put(t, one, a)
	put := Step{Table: two, Key: id("b"), Decide: give(Item{"id": String("b")})}
	refused := errors.New("refused")
	large := Item{"id": String("c"), "v": String(strings.Repeat("x", MaxItemSize-10))}
	var heavy []Step
	for i := range 11 {
		key := String(string(rune('a' + i)))
		heavy = append(heavy, Step{
			Table: one, Key: Key{Hash: key},
			Decide: give(Item{"id": key, "v": large["v"]}),
		})
	}
	for _, test := range []struct {
		name  string
		steps []Step
		err   error
	}{
		{"refused", []Step{put, {
			Table: one, Key: id("a"), Check: true,
			Decide: func(Item) (Item, error) { return nil, refused },
		}}, ErrCancelled},
		{"too large an item", []Step{put, {
			Table: one, Key: id("c"), Decide: give(Item{"id": String("c"), "v": large["v"], "w": large["v"]}),
		}}, ErrCancelled},
		{"the same item", []Step{put, put}, ErrSameItem},
		{"another key", []Step{put, {Table: one, Key: Key{Hash: NumberOf(1)}}}, ErrKey},
		{"a dropped table", []Step{put, {Table: gone, Key: id("a"), Decide: give(nil)}}, ErrTableNotFound},
		{"too large", heavy, ErrTransactionTooLarge},
	} {
		outcome, err := b.Transact(t.Context(), test.steps, 0, nil)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", test.name, err, test.err)
		}
		if errors.Is(err, ErrCancelled) && (len(outcome.Errs) != 2 || outcome.Errs[0] != nil || outcome.Errs[1] == nil) {
			t.Errorf("%s: %v", test.name, outcome.Errs)
		}
		if got := b.get(t, two, id("b")); got != nil {
			t.Errorf("%s: half of it was made", test.name)
		}
		if got := b.get(t, one, id("a")); !Equal(got, a) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	end := b.log.Durable()
	outcome, err := b.Transact(t.Context(), []Step{
		{Table: one, Key: id("a"), Check: true, Decide: give(nil)},
		{Table: two, Key: id("none"), Decide: give(nil)},
	}, 0, nil)
	if err != nil || b.log.Durable() != end || !Equal(outcome.Written[0].New(), a) || outcome.Written[0].NewSize != Size(a) {
		t.Errorf("nothing to do: %+v, %v", outcome, err)
	}
}

func TestTokens(t *testing.T) { synctest.Test(t, testTokens) }

func testTokens(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, fs)
	b.create(t, "table", byID)
	token := func(text string, hash byte, at int64) *Token {
		return &Token{World: world, Text: text, Hash: [32]byte{hash}, At: at}
	}
	add := func(token *Token) (Outcome, error) {
		return b.Transact(t.Context(), []Step{{
			Table: b.table(t, "table"), Key: id("a"),
			Decide: func(old Item) (Item, error) {
				n, _ := old["n"].(Number)
				sum, err := n.Add(NumberOf(1))
				return Item{"id": String("a"), "n": sum}, err
			},
		}}, 50, token)
	}
	expect := func(name string, token *Token, repeated bool, n int64) {
		t.Helper()
		outcome, err := add(token)
		if err != nil || outcome.Repeated != repeated {
			t.Errorf("%s: %+v, %v", name, outcome, err)
		}
		if got := b.get(t, b.table(t, "table"), id("a"))["n"]; got != NumberOf(n) {
			t.Errorf("%s: %v, want %d", name, got, n)
		}
	}
	expect("first", token("x", 1, 1000), false, 1)
	expect("again", token("x", 1, 1000+TokenLife-1), true, 1)
	if _, err := add(token("x", 2, 2000)); !errors.Is(err, ErrTokenUsed) {
		t.Errorf("another transaction: %v", err)
	}
	for _, checkpoint := range []bool{false, true} {
		if checkpoint {
			if err := b.log.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.close(t)
		b = open(t, fs)
		expect("after reopening", token("x", 1, 3000), true, 1)
	}
	expect("after the clock was set forward", token("x", 1, 1000+TokenLife), true, 1)
	time.Sleep(TokenLife * time.Millisecond)
	expect("too late", token("x", 1, 1000+TokenLife), false, 2)
	expect("and again", token("x", 1, 1001+TokenLife), true, 2)
	expect("another token", token("y", 1, 1000), false, 3)
	other := token("y", 1, 1000)
	other.World.Region = "elsewhere"
	expect("another world", other, false, 4)
	b.close(t)
}

// TestTokensAreBounded forgets the oldest.
func TestTokensAreBounded(t *testing.T) {
	var known tokens
	for i := range int64(MaxTokens + 10) {
		known.add(Token{Text: NumberOf(i).String(), At: 1}, 0)
	}
	if len(known.known) != MaxTokens || len(known.order) != MaxTokens {
		t.Errorf("%d, %d", len(known.known), len(known.order))
	}
	if known.find(&Token{Text: "9", At: 1}) != nil || known.find(&Token{Text: "10", At: 1}) == nil {
		t.Error("not the oldest")
	}
}

// TestTransactionsAreIsolated moves amounts between two items of two tables, from many
// goroutines, in both orders: the sum stays the same, also in transactions that read both items.
func TestTransactionsAreIsolated(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	tables := []*Table{b.create(t, "one", byID), b.create(t, "two", byID)}
	for _, table := range tables {
		b.put(t, table, Item{"id": String("a"), "n": NumberOf(100)})
	}
	add := func(table *Table, by int64) Step {
		return Step{Table: table, Key: id("a"), Decide: func(old Item) (Item, error) {
			sum, err := old["n"].(Number).Add(NumberOf(by))
			return Item{"id": String("a"), "n": sum}, err
		}}
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for range 50 {
				from, to := tables[worker%2], tables[1-worker%2]
				if _, err := b.Transact(t.Context(), []Step{add(from, -1), add(to, 1)}, 100, nil); err != nil {
					t.Error(err)
					return
				}
				seen := int64(0)
				look := func(old Item) (Item, error) {
					n, _ := old["n"].(Number).small()
					seen += n
					return nil, nil
				}
				_, err := b.Transact(t.Context(), []Step{
					{Table: to, Key: id("a"), Check: true, Decide: look},
					{Table: from, Key: id("a"), Check: true, Decide: look},
				}, 0, nil)
				if err != nil || seen != 200 {
					t.Errorf("the sum is %d, %v", seen, err)
					return
				}
			}
		})
	}
	group.Wait()
}
