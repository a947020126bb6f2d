package archive

import (
	"bytes"
	stdgzip "compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

func someLink() *Link {
	return &Link{
		Stream:  Stream{Name: "orders", Created: time.UnixMilli(1_700_000_000_000).UTC()},
		ShardID: "shardId-000000000002", Previous: runnel.Start(),
		End:   runnel.Position{Sequence: "49590338271490256608559692538361571095921575989136588898", Sub: 3},
		Count: 12, Bytes: 3456, CRC: 0x0a1b2c3d, Writer: "w", Nonce: "n",
		Mapped: true, Dropped: 7,
		FirstArrival: time.UnixMilli(1_700_000_000_001).UTC(),
		LastArrival:  time.UnixMilli(1_700_000_000_999).UTC(),
		Parents: []Parent{
			{ShardID: "shardId-000000000000", Link: runnel.Position{Sequence: "17"}},
			{ShardID: "shardId-000000000001", None: true},
		},
		Gap: &sink.Gap{After: runnel.Start(), Before: runnel.Position{Sequence: "5"}, Reason: "trimmed"},
	}
}

func TestLinkRoundTrip(t *testing.T) {
	plain := &Link{Stream: someLink().Stream, ShardID: "s", End: runnel.End()}
	long := someLink()
	long.Writer = strings.Repeat("w", 200_000) // members of its own
	exact := someLink()
	text, _ := json.Marshal(exact)
	exact.Writer += strings.Repeat("w", maxChunk-len(text))
	state, large := someLink(), someLink()
	state.State = []byte("what the reader knew")
	large.State = make([]byte, 6<<20) // as large as a filter's gets
	random := rand.New(rand.NewPCG(6, 20))
	for i := range large.State {
		large.State[i] = byte(random.Uint32())
	}
	most := &Link{Stream: someLink().Stream, ShardID: "s", End: runnel.End()}
	most.State = make([]byte, MaxState)
	for _, link := range []*Link{plain, someLink(), long, exact, state, large, most} {
		object, err := appendLink(nil, link)
		if err != nil {
			t.Fatal(err)
		}
		reader := newMember(bytes.NewReader(object))
		got, err := reader.readLink()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, link) {
			t.Errorf("got  %.900s\nwant %.900s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", link))
		}
		records, err := reader.records()
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(records); err != nil || len(rest) > 0 {
			t.Errorf("behind the link: %q, %v", rest, err)
		}
		// Any gzip reader finds no data in it.
		unpacked, err := stdgzip.NewReader(bytes.NewReader(object))
		if err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(unpacked); err != nil || len(rest) > 0 {
			t.Errorf("zcat shows %q, %v", rest, err)
		}
	}
}

// TestLinkDamage flips every bit and cuts at every byte: it is never read as another link.
func TestLinkDamage(t *testing.T) {
	link := someLink()
	link.State = []byte("known")
	object, err := appendLink(nil, link)
	if err != nil {
		t.Fatal(err)
	}
	read := func(object []byte) (*Link, error) { return newMember(bytes.NewReader(object)).readLink() }
	for i := range object {
		if _, err := read(object[:i]); !errors.Is(err, ErrUnusableLink) {
			t.Fatalf("cut at %d: %v", i, err)
		}
		for bit := range 8 {
			damaged := bytes.Clone(object)
			damaged[i] ^= 1 << bit
			got, err := read(damaged)
			if err == nil && !reflect.DeepEqual(got, link) {
				t.Fatalf("byte %d, bit %d: read as %+v", i, bit, got)
			}
			if err != nil && !errors.Is(err, ErrUnusableLink) {
				t.Fatalf("byte %d, bit %d: %v", i, bit, err)
			}
		}
	}
}

func TestLinkRefuses(t *testing.T) {
	good, err := json.Marshal(someLink())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"format":"runnel.archive"`, `"format":"other"`},
		{`"version":1`, `"version":4`},
		{`"version":1`, `"version":3`}, // without a change
		{`"version":1`, `"version":2,"change":{"base":"001-0-0000000000","delta":""}`},
		{`"version":1`, `"version":3,"state":"AAEC","change":{"base":"001-0-0000000000","delta":""}`},
		{`"version":1`, `"version":3,"change":{"base":"end","delta":""}`},
		{`"version":1`, `"version":3,"change":{"base":"0","delta":""}`},
		{`"version":1`, `"version":3,"change":{"base":"001-0-0000000000","delta":"A"}`},
		{`"gap":{`, `"state":"AAEC","gap":{`}, // version 1 has none
		{`"version":1`, `"version":2,"state":"A"`},
		{`"version":1`, `"version":2,"state":7`},
		{`"version":1`, `"version":0`},
		{`"form":"object"`, `"form":"manifest"`},
		{`"previous":"001-0-0000000000"`, `"previous":"056-49590338271490256608559692538361571095921575989136588898-0000000003"`},
		{`"previous":"001-0-0000000000"`, `"previous":"end"`},
		{`"previous":"001-0-0000000000"`, `"previous":"0"`},
		{`"count":12`, `"count":-12`},
		{`"crc32c":"0a1b2c3d"`, `"crc32c":"x"`},
		{`"link":"none"`, `"link":""`},
		{`"firstArrival":"`, `"firstArrival":"x`},
	} {
		text := strings.Replace(string(good), change[0], change[1], 1)
		if text == string(good) {
			t.Fatalf("%s is not in %s", change[0], good)
		}
		if err := new(Link).UnmarshalJSON([]byte(text)); !errors.Is(err, ErrUnusableLink) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
	unknown := strings.Replace(string(good), `{`, `{"later":{"a":1},`, 1)
	if err := new(Link).UnmarshalJSON([]byte(unknown)); err != nil {
		t.Errorf("a field that is not known: %v", err)
	}
	var packed bytes.Buffer
	foreign := stdgzip.NewWriter(&packed)
	fmt.Fprintln(foreign, `{}`)
	if err := foreign.Close(); err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string][]byte{
		"empty": nil, "text": []byte("{}\n"), "plain gzip": packed.Bytes(),
	} {
		if _, err := newMember(bytes.NewReader(object)).readLink(); !errors.Is(err, ErrUnusableLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinkVersion shows that older programs can read a link without a state, and that they refuse
// one with a change.
func TestLinkVersion(t *testing.T) {
	for _, c := range []struct {
		state []byte
		want  string
	}{{nil, `"version":1,`}, {[]byte{}, `"version":1,`}, {[]byte{0}, `"version":2,`}} {
		link := someLink()
		link.State = c.state
		if text := mustJSON(t, link); !strings.Contains(text, c.want) {
			t.Errorf("with the state %v: %s", c.state, text)
		}
	}
	changed := someLink()
	changed.Change = &Change{Base: changed.Previous, Delta: []byte{3, 0}}
	if text := mustJSON(t, changed); !strings.Contains(text, `"version":3,`) {
		t.Errorf("with a change: %s", text)
	}
	newer := strings.Replace(mustJSON(t, changed), `"version":3`, `"version":4`, 1)
	err := new(Link).UnmarshalJSON([]byte(newer))
	if err == nil || !strings.Contains(err.Error(), "version 4") || !strings.Contains(err.Error(), "use a newer runnel") {
		t.Errorf("a newer link: %v", err)
	}
	// Version 2 is read without a state as well.
	link, text := new(Link), strings.Replace(mustJSON(t, someLink()), `"version":1`, `"version":2`, 1)
	if err := link.UnmarshalJSON([]byte(text)); err != nil || !reflect.DeepEqual(link, someLink()) {
		t.Errorf("%s: %+v, %v", text, link, err)
	}
}

// TestStateLimit shows that no object makes a reader hold more than MaxState.
func TestStateLimit(t *testing.T) {
	link := someLink()
	link.State = make([]byte, MaxState+1)
	object, err := appendLink(nil, link)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newMember(bytes.NewReader(object)).readLink()
	if !errors.Is(err, ErrUnusableLink) || !strings.Contains(err.Error(), "16777217 bytes") {
		t.Errorf("got %v", err)
	}
}

// FuzzReadLink checks that no object causes a panic, and that a link is the same after writing and
// reading.
func FuzzReadLink(f *testing.F) {
	object, err := appendLink(nil, someLink())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(object)
	text, _ := json.Marshal(someLink())
	f.Add(appendHeaders(nil, text[:40]))
	f.Add(text)
	known := someLink()
	known.State = []byte{1, 0, 0, 0xff}
	object, err = appendLink(nil, known)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(object)
	text, _ = json.Marshal(known)
	f.Add(text)
	changed := someLink()
	changed.Change = &Change{Base: changed.Previous, Delta: []byte{3, 0}}
	text, _ = json.Marshal(changed)
	f.Add(text)
	f.Fuzz(func(t *testing.T, object []byte) {
		check := func(reader *member) {
			link, err := reader.readLink()
			if err != nil {
				if !errors.Is(err, ErrUnusableLink) {
					t.Fatalf("an error of another kind: %v", err)
				}
				return
			}
			again, err := appendLink(nil, link)
			if err != nil {
				t.Fatal(err)
			}
			got, err := newMember(bytes.NewReader(again)).readLink()
			if err != nil {
				t.Fatal(err)
			}
			if first, second := mustJSON(t, link), mustJSON(t, got); first != second {
				t.Fatalf("%s\n%s", first, second)
			}
		}
		check(newMember(bytes.NewReader(object)))
		check(newMember(bytes.NewReader(appendHeaders(nil, object)))) // past the checksums
	})
}

func mustJSON(t *testing.T, link *Link) string {
	text, err := json.Marshal(link)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
