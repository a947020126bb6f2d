package transport

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watchedBody is a long body of different bytes.
func watchedBody(length int) []byte {
	return bytes.Repeat([]byte("0123456789abcde"), length/15)
}

// watch answers with a watched body.
func watch(
	w http.ResponseWriter, body []byte, look func(gone int, waited time.Duration) (goOn bool),
) error {
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	return w.(*shortcutAnswer).WriteWatched(body, look)
}

// A watched body comes whole, and the answer after it has a deadline of its own.
func TestWatchedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := watchedBody(3 << 20)
		_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
			if r.Header.Get("Watched") == "" {
				echo(w, r)
				return
			}
			err := watch(w, body, func(int, time.Duration) bool { return true })
			if err != nil {
				t.Error(err)
			}
		}))
		conn := dial()
		answerTo(t, conn, plainCall("", "first"))
		go func() { _, _ = io.WriteString(conn, plainCall("Watched: yes\r\n", "")) }()
		time.Sleep(10 * time.Second) // watch permits it
		answer, read := readAnswer(t, conn)
		if answer.StatusCode != http.StatusOK || !bytes.Equal(read, body) {
			t.Errorf("%s, %d bytes", answer.Status, len(read))
		}
		go func() { _, _ = io.WriteString(conn, plainCall("", "third")) }()
		time.Sleep(30 * time.Second)
		if answer, _ := readAnswer(t, conn); answer.StatusCode != http.StatusOK {
			t.Errorf("the third: %s", answer.Status)
		}
	})
}

// A watched answer looks four times a second, and a pause of the process counts as half a second at
// most. It ends its connection when watch says so, also if a deadline of the past came meanwhile.
func TestWatchedAnswersEnd(t *testing.T) {
	for name, pause := range map[string]time.Duration{"": 0, "paused": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, began, looks := watchedBody(3<<20), time.Now(), 0
				var cut atomic.Bool
				done := make(chan struct{})
				_, dial := piped(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					go func() {
						time.Sleep(pause + 10*time.Second + 100*time.Millisecond)
						cut.Store(true)
						_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
					}()
					defer close(done)
					_ = watch(w, body, func(_ int, waited time.Duration) bool {
						if want := min(time.Since(began), time.Duration(looks)*lookEvery); pause == 0 &&
							waited != want {
							t.Errorf("look %d after %s: it has waited for %s", looks,
								time.Since(began), waited)
						}
						if looks++; looks == 3 {
							time.Sleep(pause)
						}
						if pause > 0 && waited > time.Duration(looks)*2*lookEvery {
							t.Errorf("it has waited for %s at look %d", waited, looks)
						}
						return !cut.Load()
					})
				}))
				conn := dial()
				_, _ = io.WriteString(conn, plainCall("", ""))
				<-done
				if pause == 0 && looks != 42 {
					t.Errorf("%d looks", looks)
				}
				rest, err := io.ReadAll(conn)
				if err != nil || len(rest) >= len(body) {
					t.Errorf("%d bytes, %v", len(rest), err)
				}
			})
		})
	}
}
