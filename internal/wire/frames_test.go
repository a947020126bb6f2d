package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// decoded reads one message with the SDK's decoder, which checks the lengths and both sums.
func decoded(r io.Reader) (Event, error) {
	message, err := eventstream.NewDecoder().Decode(r, nil)
	if err != nil {
		return Event{}, err
	}
	header := func(name string) string {
		value, _ := message.Headers.Get(name).(eventstream.StringValue)
		return string(value)
	}
	e := Event{Payload: message.Payload, Exception: header(":message-type") == "exception"}
	e.Type = header(":event-type")
	switch {
	case e.Exception:
		e.Type = header(":exception-type")
	case header(":message-type") != "event":
		return e, errors.New("the message type is " + header(":message-type"))
	}
	if header(":content-type") != "application/json" || len(message.Headers) != 3 {
		return e, errors.New("its headers are others")
	}
	return e, nil
}

func same(a, b Event) bool {
	return a.Type == b.Type && a.Exception == b.Exception && bytes.Equal(a.Payload, b.Payload)
}

func TestAppendFrame(t *testing.T) {
	for _, e := range []Event{
		initialResponse,
		{Type: "SubscribeToShardEvent", Payload: []byte(`{"Records":[]}`)},
		{Type: "SubscribeToShardEvent"},
		{Type: "ResourceInUseException", Exception: true, Payload: []byte(`{"message":"x"}`)},
		{Type: "E", Payload: bytes.Repeat([]byte("x"), MaxFrame-200)},
	} {
		frame := AppendFrame([]byte("before"), e)
		rest, ok := bytes.CutPrefix(frame, []byte("before"))
		if !ok {
			t.Errorf("%s: it does not append", e.Type)
		}
		if got, err := decoded(bytes.NewReader(rest)); err != nil || !same(got, e) {
			t.Errorf("%s: decoded as %+v, %v", e.Type, got, err)
		}
	}
}

func FuzzAppendFrame(f *testing.F) {
	f.Add("SubscribeToShardEvent", false, []byte("{}"))
	f.Add("InternalFailureException", true, []byte(nil))
	f.Fuzz(func(t *testing.T, kind string, exception bool, payload []byte) {
		if kind = kind[:min(len(kind), 1000)]; kind == "" {
			kind = "E"
		}
		e := Event{Type: kind, Exception: exception, Payload: payload}
		frame := AppendFrame(nil, e)
		if got, err := decoded(bytes.NewReader(frame)); err != nil || !same(got, e) {
			t.Fatalf("%+v is decoded as %+v, %v", e, got, err)
		}
	})
}

// stream starts an event stream at a real server, and has the events written to it.
func stream(t *testing.T, events ...Event) *http.Response {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, err := Begin(w, r, Checks{})
		if err != nil {
			return
		}
		x.Close() // the stream needs nothing of the request
		frames, err := x.Stream()
		for i := range events {
			if err == nil {
				err = frames.Write(events[i])
			}
		}
		if err != nil {
			t.Errorf("write: %v", err)
		}
		<-r.Context().Done() // all written bytes must have been sent by now
	}))
	t.Cleanup(s.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", json11)
	r.Header.Set("X-Amz-Target", "Kinesis_20131202.SubscribeToShard")
	answer, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func TestStream(t *testing.T) {
	events := []Event{
		{Type: "SubscribeToShardEvent", Payload: []byte(`{"Records":[]}`)},
		{Type: "SubscribeToShardEvent", Payload: bytes.Repeat([]byte("x"), 300_000)},
		{Type: "InternalFailureException", Exception: true, Payload: []byte(`{}`)},
	}
	answer := stream(t, events...)
	if answer.StatusCode != http.StatusOK ||
		answer.Header.Get("Content-Type") != "application/vnd.amazon.eventstream" ||
		!uuid.MatchString(answer.Header.Get("X-Amzn-Requestid")) ||
		answer.Header.Get("X-Amz-Id-2") == "" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	for _, want := range append([]Event{{Type: "initial-response", Payload: []byte("{}")}}, events...) {
		if got, err := decoded(answer.Body); err != nil || !same(got, want) {
			t.Fatalf("%+v, %v; want %s", got, err, want.Type)
		}
	}
}

// broken fails the nth write.
type broken struct {
	http.ResponseWriter
	n int
}

func (b *broken) Write(p []byte) (int, error) {
	if b.n--; b.n < 0 {
		return 0, io.ErrClosedPipe
	}
	return b.ResponseWriter.Write(p)
}

func (b *broken) FlushError() error {
	_, err := b.Write(nil)
	return err
}

func TestStreamToNobody(t *testing.T) {
	for n := range 8 {
		x := &Exchange{w: &broken{httptest.NewRecorder(), n}}
		frames, err := x.Stream()
		if err == nil {
			err = frames.Write(Event{Type: "E"})
		}
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after %d writes: %v", n, err)
		}
	}
}

func BenchmarkFrames(b *testing.B) {
	w := &broken{discard{}, math.MaxInt}
	e := Event{Type: "SubscribeToShardEvent", Payload: bytes.Repeat([]byte("x"), 10_000)}
	frames := &Frames{w: w, control: http.NewResponseController(w)}
	b.ReportAllocs()
	for b.Loop() {
		if err := frames.Write(e); err != nil {
			b.Fatal(err)
		}
	}
}
